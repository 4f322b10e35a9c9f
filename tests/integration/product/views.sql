-- grouped
select u.id, u.name, count(o.id) as orders, sum(o.total) as total, max(o.at) as last,
coalesce(json_agg(json_build_object('id', o.id, 'total', o.total) order by o.at desc, o.id) filter (where o.id is not
null), '[]') as list from users u left join orders o on o.user_id = u.id group by u.id, u.name

-- counted rows
select u.id, count(*) as n, count(distinct o.status) as kinds, string_agg(o.status, ', ' order by o.id) as s,
sum(coalesce(o.total, 0)) as t, sum(case when o.status = 'paid' then 1 else 0 end) as paid, bool_or(o.total > 5) as
big from users u left join orders o on o.user_id = u.id group by u.id

-- inner
select u.id, u.name as who, array_agg(o.id order by o.total desc nulls last, o.id) as ids, count(*) as n, avg(o.total)
as mean from users u join orders o on o.user_id = u.id where o.status = 'paid' or o.total = 1 group by u.id, u.name
having count(*) >= 1

-- chain
select u.id, count(l.number) as lines, sum(l.qty * l.price) as worth, count(distinct o.id) as orders, max(o.total) as
top from users u left join orders o on o.user_id = u.id left join line l on l.order_id = o.id group by u.id

-- chain inner
select u.id, count(*) as lines, sum(l.qty * l.price) as worth, json_agg(l.item order by o.id, l.number) as items from
users u join orders o on o.user_id = u.id join line l on l.order_id = o.id group by u.id

-- one joins
select u.id, u.name || ' of ' || c.name as who, t.title as country from users u left join city c on c.id = u.city left
join country t on t.code = c.country

-- grouped by the table that is not first
select u.id, u.name, c.name as city, sum(o.total) as total from orders o join users u on u.id = o.user_id left join
city c on c.id = u.city group by u.id, u.name, c.name

-- correlated
select u.id, (select count(*) from orders o where o.user_id = u.id and o.status = 'paid') as paid, (select c.name from
city c where c.id = u.city) as city, (select o.id from orders o where o.user_id = u.id order by o.total desc, o.id
limit 1) as top, (select json_agg(json_build_object('sku', l.item, 'title', i.title, 'of', u.name) order by
l.order_id) from line l left join item i on i.sku = l.item where u.id = l.number and l.price > u.id - 1) as lines from
users u

-- listed
select u.id, array(select o.id from orders o where o.user_id = u.id order by o.id desc) as ids, coalesce((select
jsonb_agg(a.street order by a.id) from address a where a.user_id = u.id), '[]'::jsonb) as streets,
json_build_object('name', u.name, 'city', (select c.name from city c where c.id = u.city)) as who from users u

-- exists
select u.id from users u where exists (select 1 from orders o where o.user_id = u.id and o.total > 4) and not exists
(select 1 from address a where a.user_id = u.id and a.main) or u.id = 3

-- in
select u.id, u.name from users u where u.id in (select user_id from orders where status = 'open')

-- anti
select u.id, u.name from users u left join orders o on o.user_id = u.id where o.id is null

-- grouped subquery
select u.id, u.name, o.n, o.total, coalesce(o.n, 0) as known from users u left join (select user_id, count(*) as n,
sum(total) as total from orders where status <> 'x' group by user_id) o on o.user_id = u.id

-- grouped subquery, inner
select u.id, o.n, o.user_id, c.name from users u join (select user_id, count(*) n, max(total) top from orders group by
user_id) o on o.user_id = u.id left join city c on c.id = u.city where o.n > 1 or o.top = 1

-- with
with totals as (select user_id, sum(total) as total from orders group by user_id), mains as (select user_id, street
from address where main) select u.id, t.total, (select count(*) from address a where a.user_id = u.id) as addresses
from users u left join totals t on t.user_id = u.id

-- first by number
select u.id, l.id as order_id, l.status from users u left join (select o.*, row_number() over (partition by user_id
order by total desc, id) as rn from orders o) l on l.user_id = u.id and l.rn = 1

-- distinct on
select u.id, l.total from users u join (select distinct on (user_id) user_id, total from orders order by user_id, at
desc, id) l on l.user_id = u.id

-- lateral
select u.id, x.id as latest, y.n, y.ids from users u left join lateral (select o.id from orders o where o.user_id =
u.id order by o.at desc nulls last, o.id limit 1) x on true cross join lateral (select count(*) as n, json_agg(a.id
order by a.id) as ids from address a where a.user_id = u.id) y

-- comma
select u.id, c.name from users u, city c where c.id = u.city and u.id < 3

-- bracketed
select o.id, u.name, c.name as city from (orders o join users u on u.id = o.user_id) left join city c on c.id = u.city

-- using
select a.id, u.name from address a join (select id as user_id, name from users) u using (user_id)

-- filtered
select u.id, count(*) filter (where o.status = 'paid') as paid, sum(o.total) filter (where o.at > '2026-01-01') as
late from users u left join orders o on o.user_id = u.id where u.plan is not null group by u.id

-- whole rows
select u.id, json_agg(o order by o.id) as orders, min(o.at) as first from users u join orders o on o.user_id = u.id
group by u.id

-- row to json
select u.id, row_to_json(c) as city from users u join city c on c.id = u.city

-- subquery table
select u.id, count(p.id) as paid from users u left join (select * from orders where status = 'paid') p on p.user_id =
u.id group by u.id

-- inner one below a list
select u.id, count(*) as n, json_agg(i.title order by l.order_id, l.number) as titles from users u join orders o on
o.user_id = u.id join line l on l.order_id = o.id join item i on i.sku = l.item group by u.id

-- inner one below a left one
select u.id, t.title from users u left join city c on c.id = u.city join country t on t.code = c.country

-- where on a left list
select u.id, count(o.id) as n, count(*) as every_row from users u left join orders o on o.user_id = u.id where o.total
> 1 and u.id < 9 group by 1

-- where on a one below a list
select u.id, sum(l.qty) as qty from users u join orders o on o.user_id = u.id join line l on l.order_id = o.id left
join item i on i.sku = l.item where i.title is not null group by u.id, u.name

-- left one below a left list
select u.id, count(i.title) as n, string_agg(i.title || l.item, ',' order by l.number) as t, max(u.name) as name from
users u left join orders o on o.user_id = u.id left join line l on l.order_id = o.id left join item i on i.sku =
l.item group by u.id

-- two lists
select u.id, count(distinct o.id) as orders, count(distinct a.id) as addresses, max(o.total) as top, bool_or(a.main)
as main from users u left join orders o on o.user_id = u.id left join address a on a.user_id = u.id group by u.id

-- two inner lists
select u.id, count(distinct o.id) as orders, min(a.street) as street from users u join orders o on o.user_id = u.id
join address a on a.user_id = u.id group by u.id

-- order of the root
select u.id, u.name || '!' as name from users u order by u.name

-- grouped by alias and number
select u.id as key, u.id, u.name, min(o.id) as first from users u left join orders o on u.id = o.user_id group by key,
2, u.name

-- lateral below a one
select u.id, c.name, x.n from users u left join city c on c.id = u.city left join lateral (select count(*) as n from
users v where v.city = c.id) x on true

-- first row below a one
select o.id, u.name, x.street from orders o join users u on u.id = o.user_id left join lateral (select a.street from
address a where a.user_id = u.id order by a.main desc, a.id limit 1) x on true

-- first row with a table
select u.id, x.item, x.title from users u left join lateral (select l.item, i.title from line l left join item i on
i.sku = l.item where l.number = u.id order by l.price desc, l.order_id limit 1) x on true

-- having
select u.id from users u left join orders o on o.user_id = u.id group by u.id having count(o.id) = 0 or sum(o.total) >
5

-- case and exists
select u.id, case when exists (select 1 from orders o where o.user_id = u.id) then 'buyer' else 'guest' end as kind,
not exists (select 1 from address a where a.user_id = u.id) as homeless from users u

-- a list next to an exists
select u.id, count(*) as n, sum(o.total) as t from users u join orders o on o.user_id = u.id
where exists (select 1 from address a where a.user_id = u.id) or u.id = 4 group by u.id
having not exists (select 1 from address a where a.user_id = u.id and a.street = 'C')

-- a grouped table in a grouped query
with paid as (select user_id, sum(total) as amount from orders where status = 'paid' group by user_id)
select u.id, coalesce(p.amount, 0) as paid, count(a.id) as addresses, max(p.amount) as most
from users u left join paid p on p.user_id = u.id left join address a on a.user_id = u.id group by u.id, p.amount

-- a group of a column
select status, count(*) as n, count(total) as known, sum(total) as total, min(at) as first, array_agg(id order by id) as
ids from orders where status is not null group by status

-- a group of expressions
select coalesce(o.status, 'none') as status, o.at::date as day, count(*) as n, avg(o.total) as mean from orders o where
o.at >= '2026-01-01' group by 1, o.at::date

-- a group with the row that its column names
select l.item, i.title, sum(l.qty * l.price) as worth, count(*) filter (where l.qty > 1) as many from line l left join
item i on i.sku = l.item where l.item is not null group by l.item, i.title having sum(l.price) > 1

-- a group of rows with joined rows
select l.item, count(*) as n, max(o.at) as last, sum(o.total) as t from line l join orders o on o.id = l.order_id where
l.item is not null and o.status = 'open' group by l.item

-- a group of rows above others
select u.plan, count(o.id) as orders, sum(o.total) as total, count(distinct u.id) as users from users u left join orders
o on o.user_id = u.id where u.plan is not null group by u.plan

-- a group of rows with inner rows
select u.plan, count(*) as orders, sum(o.total) as total, bool_or(o.total > 6) as big from orders o join users u on
u.id = o.user_id where u.plan in ('pro', 'free') group by u.plan

-- distinct values
select distinct status, user_id from orders where status is not null and user_id > 0

-- a group with subqueries of its columns
select o.status, count(*) as n, (select count(*) from address a where a.street = o.status) as streets from orders o
where o.status is not null group by o.status

-- a group whose conditions leave no null
select status, count(*) as n, sum(total) as total from orders where status not in ('gone', 'lost') and not (status like
'x%') group by status

-- counts with a filter in a grouped subquery, also of the column that joins it
select u.id, coalesce(o.paid, 0) as paid, coalesce(o.owners, 0) as owners from users u left join (select user_id,
count(*) filter (where status = 'paid') as paid, count(distinct user_id) filter (where total > 4) as owners from orders
group by user_id) o on o.user_id = u.id

-- conditions in the ON of a left subquery
select u.id, count(o.number) as n, sum(o.amount) as t from users u left join (select id as number, user_id, status,
total as amount from orders) o on o.user_id = u.id and o.amount > 4 and o.status is not null group by u.id

-- a condition that no row meets, in the ON of a left join
select u.id, count(o.id) as n from users u left join orders o on o.user_id = u.id and o.id is null group by u.id

-- any of a subquery
select u.id from users u where u.id = any (select o.user_id from orders o where o.status = 'open')

-- using in brackets
select u.id, u.name, count(o.id) as n from (users u join (select id as city, country from city) c using (city)) left
join orders o on o.user_id = u.id where c.country = 'IT' group by u.id, u.name

-- a table with the name of a column of the one above
select o.id, count(item.title) as titles from orders o left join line l on l.order_id = o.id left join item on item.sku
= l.item group by o.id

-- names with and without double quotes
select o."status" as status, count(*) as n from orders o where o.status is not null group by "o".status

-- an empty array of sql, and an empty object of json
select u.id, coalesce(array_agg(o.status order by o.id) filter (where o.id is not null), '{}') as list,
coalesce(json_object_agg(o.id, o.total) filter (where o.id is not null), '{}') as map, coalesce((select
array_agg(a.street order by a.id) from address a where a.user_id = u.id), '{}') as streets from users u left join orders
o on o.user_id = u.id group by u.id

-- a constant in the ON of a left join
select u.id, count(o.id) as n from users u left join orders o on o.user_id = u.id and 1 > 2 group by u.id

-- an empty list in brackets
select u.id, coalesce(json_agg(o.id order by o.id) filter (where o.id is not null), ('[]'::json)) as ids from users u
left join orders o on o.user_id = u.id group by u.id

-- a constant in the WHERE of groups
select status, count(*) as n from orders where status is not null and 2 > 1 group by status
