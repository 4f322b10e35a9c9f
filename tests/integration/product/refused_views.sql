-- has a row for each row of `o`
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

-- names a column of `x`, which is a subquery
select sum(x.n) as n from (select status, count(*) as n from orders where status is not null group by status) x

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

-- is a window over all rows
select u.id, rank() over (order by u.id) as r from users u

-- is a window
select l.order_id, l.number, ntile(2) over (partition by order_id order by number) as n from line l

-- has a frame
select l.order_id, l.number, sum(qty) over (partition by order_id order by number rows between 1 preceding and current row)
as n from line l

-- reads a row further away
select l.order_id, l.number, lag(qty, 2) over (partition by order_id order by number) as n from line l

-- has a value for the first row
select l.order_id, l.number, lag(qty, 1, 0) over (partition by order_id order by number) as n from line l

-- is a window over rows that a join chooses
select l.order_id, l.number, rank() over (partition by order_id order by number) as n from line l join item i on i.sku =
l.item

-- chooses or repeats
select x.user_id, max(x.n) as n from (select o.user_id, row_number() over (partition by o.user_id order by o.id) as n from orders
o left join line l on l.order_id = o.id where o.user_id is not null) x group by x.user_id

-- is a window (again, 3)
select l.order_id, array_agg(qty) over (partition by order_id order by number) as n from line l

-- is a window over rows that no table has
select l.order_id, count(*) as n, rank() over (partition by order_id order by count(*)) as r from line l group by l.order_id

-- numbers values that may be null
select l.order_id, l.number, dense_rank() over (partition by order_id order by qty) as n from line l

-- has `partition by lower(item)`
select l.order_id, l.number, rank() over (partition by lower(item) order by qty) as n from line l

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

-- is a column of another row than that which the subquery joins
select o.status, count(*) as n from orders o left join users u on u.id = o.user_id where o.status is not null and (u.plan is
null or not exists (select 1 from line l where l.order_id = o.id and l.price > u.id)) group by o.status

-- makes groups of several kinds
select status, count(*) as n from orders where status is not null group by rollup (status)

-- has a value for each row of `orders`
select status, total from orders where status is not null group by status

-- add `filter (where o.id is not null)`
select u.id, sum(coalesce(o.total, 1)) filter (where (o.status = 'open') is not true) as t from users u left join orders o
on o.user_id = u.id group by u.id

-- add `filter (where o.id is not null)` (again, 2)
select u.id, sum(coalesce(o.total, 1)) filter (where not (o.status is not null)) as t from users u left join orders o
on o.user_id = u.id group by u.id

-- has a row for each row of `o` (again, 2)
with a as (select * from address) select u.id, o.id as order_id, a.id as address from users u join orders o on o.user_id =
u.id join a on a.user_id = u.id

-- joins a row to each row of `o`
select x.id, x.n, c.name from (select u.id, count(*) as n, min(o.at) as d, o.user_id as k from users u join orders o on
o.user_id = u.id group by u.id, o.user_id) x join city c on c.id = x.k

-- WITH RECURSIVE `t` is no tree of one table
with recursive t as (select id, up from node where id = 1 union all select n.id, n.up from node n join t on n.up = t.id)
select id from t

-- WITH RECURSIVE `t` is no tree of one table: `way`
with recursive t as (select id, array[id] as way from node where up is null union all select n.id, t.way || n.id from node n
join t on n.up = t.id) select id, way from t

-- add `where t.depth > 0`
with recursive t as (select id as top, id, 0 as depth from node union all select t.top, n.id, t.depth + 1 from node n join t
on n.up = t.id) select n.id, (select count(*) from t where t.top = n.id) as n from node n

-- has a group of the rows without a row of `u`
select u.plan, count(*) as n from orders o left join users u on u.id = o.user_id group by u.plan

-- counts a row also where `l` has none (again, 3)
select u.id, x.n from users u left join (select o.user_id, count(*) as n from orders o left join line l on l.order_id = o.id
group by o.user_id) x on x.user_id = u.id

-- write `not exists (select ...)` (again, 2)
select o.id from orders o where o.user_id not in (select a.user_id from address a)

-- has a partition where `user_id` is null
with o as (select *, sum(total) over (partition by user_id) as t from orders) select o.id, o.t from o

-- the query reads more than 200 tables
with a as (select u.id from users u, users v where v.id = u.id), b as (select x.id from a x, a y where y.id = x.id), c as
(select x.id from b x, b y where y.id = x.id), d as (select x.id from c x, c y where y.id = x.id), e as (select x.id from d
x, d y where y.id = x.id), f as (select x.id from e x, e y where y.id = x.id), g as (select x.id from f x, f y where y.id =
x.id) select x.id from g x, g y where y.id = x.id

-- cannot have OFFSET
select u.id from users u offset 3

-- `u` is a UNION
select u.id from (select id from users union all select id from city) u

-- aggregates a value of `u` once for each row of a list
select u.id, string_agg(u.name, ',') as names from users u join orders o on o.user_id = u.id group by u.id
