-- has a row for each row of `o`
select u.id, u.name || 'x' as x from users u, orders o where o.user_id = u.id

-- has a row for each row of `o` (again, 2)
select u.id, upper(o.status) as s, u.id + 1 as n from users u left join orders o on o.user_id = u.id where exists
(select 1 from city c where c.id = u.city)

-- once for each row of another list
select u.id, count(o.id) as n, count(a.id) as m from users u left join orders o on o.user_id = u.id left join address
a on a.user_id = u.id group by u.id

-- counts pairs of rows
select u.id, count(*) as n from users u left join orders o on o.user_id = u.id left join address a on a.user_id = u.id
group by u.id

-- have a row of another list below
select u.id, sum(o.total) as t from users u join orders o on o.user_id = u.id join line l on l.order_id = o.id group
by u.id

-- have a row of another list below (again, 2)
select u.id, max(o.total) as t from users u left join orders o on o.user_id = u.id join line l on l.order_id = o.id
group by u.id

-- add `filter (where o.id is not null)`
select u.id, json_agg(o.id) as l from users u left join orders o on o.user_id = u.id group by u.id

-- GROUP BY `status` has a group where it is null
select o.status, count(*) as n from orders o group by o.status

-- aggregates all rows of the query
select count(*) as n from orders o

-- add `order by ... limit 1`
select u.id, (select o.total from orders o where o.user_id = u.id) as t from users u

-- write `not exists (select ...)`
select u.id from users u where u.id not in (select user_id from orders)

-- makes a row for each row of `o`
select u.id, o.status from users u left join orders o on o.user_id = u.id group by u.id, o.status

-- UNION
select id from users union all select id from city

-- nothing joins `o`
select u.id, o.n from users u left join (select status, count(*) as n from orders group by status) o on o.n = u.id

-- is a window
select u.id, rank() over (order by u.id) as r from users u

-- WITH RECURSIVE
with recursive t as (select 1) select u.id from users u

-- GROUP BY `name` has a group where it is null
select distinct u.name from users u

-- LIMIT
select u.id from users u limit 3

-- counts a row also where `l` has none
select u.id, count(*) as n from users u left join orders o on o.user_id = u.id left join line l on l.order_id = o.id
group by u.id

-- counts a row of nulls where `o` has no row
select u.id, count(distinct coalesce(o.total, 0)) as n from users u left join orders o on o.user_id = u.id group by u.id

-- counts a row of nulls where `l` has no row
select u.id, sum(coalesce(l.qty, 1)) as n from users u left join orders o on o.user_id = u.id left join line l
on l.order_id = o.id group by u.id

-- `'none'` is not JSON
select u.id, coalesce(json_agg(o.id) filter (where o.id is not null), 'none') as l from users u left join orders o
on o.user_id = u.id group by u.id

-- EXISTS of an aggregate is always true
select u.id, exists (select min(o.total) from orders o where o.user_id = u.id) as buys from users u

-- `count` has no argument
select u.id, count(distinct ) as n from users u left join orders o on o.user_id = u.id group by u.id

-- GROUP BY names columns of `o` and `l`
select o.status, l.item, count(*) as n from orders o join line l on l.order_id = o.id where o.status is not null and
l.item is not null group by o.status, l.item

-- counts a row also where `l` has none
select o.status, count(*) as n from orders o left join line l on l.order_id = o.id where o.status is not null group by
o.status

-- counts a row of nulls where `l` has no row
select o.status, sum(coalesce(l.qty, 1)) as n from orders o left join line l on l.order_id = o.id where o.status is not
null group by o.status

-- in WHERE is not over one table alone
select status, count(*) as n from orders o where status is not null and not exists (select 1 from line l where
l.order_id = o.id) group by status

-- makes groups of several kinds
select status, count(*) as n from orders where status is not null group by rollup (status)

-- has a value for each row of `orders`
select status, total from orders where status is not null group by status

-- has no name
select count(*) as n from orders group by coalesce(status, '')

-- add `filter (where o.id is not null)` (again, 2)
select u.id, sum(coalesce(o.total, 1)) filter (where (o.status = 'open') is not true) as t from users u left join orders o
on o.user_id = u.id group by u.id

-- add `filter (where o.id is not null)` (again, 3)
select u.id, sum(coalesce(o.total, 1)) filter (where not (o.status is not null)) as t from users u left join orders o
on o.user_id = u.id group by u.id
