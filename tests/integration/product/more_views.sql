-- a row for each row of a list
select u.id, u.name || 'x' as x, o.id as order_id from users u, orders o where o.user_id = u.id

-- a row for each row of the last table
select c.name as city, u.name || ' of ' || c.name as who, l.item, l.qty * l.price as worth, o.id as order_id from city c
join users u on u.city = c.id join orders o on o.user_id = u.id join line l on l.order_id = o.id where l.price > o.id - 10

-- each element, and one of nulls
select u.id, json_agg(o.id order by o.id) as ids, json_agg(json_build_object('id', o.id, 'of', u.id) order by o.id) as
orders, json_agg(o order by o.id) as whole from users u left join orders o on o.user_id = u.id group by u.id

-- a group of null
select o.status, count(*) as n, min(o.total) as least from orders o group by o.status

-- groups of null of several kinds
select status, user_id, at, lower(status) as low, date_trunc('month', at)::date as month, count(*) from orders group by status,
user_id, at, lower(status), date_trunc('month', at)::date

-- a group of local days
select (at at time zone 'Asia/Tokyo')::date as day, count(*) as n, min(at at time zone 'America/New_York') as first from orders
group by 1

-- a local day by its moment, and local times in a list
select date_trunc('day', o.at, 'Europe/Zurich')::text as day, json_agg(timezone('Asia/Tokyo', o.at) order by o.id) as times,
max(o.at at time zone 'Asia/Tokyo')::text as last from orders o group by date_trunc('day', o.at, 'Europe/Zurich')

-- distinct values and null
select distinct u.plan, u.city from users u

-- a group without a name
select count(*) as n, max(id) as last from orders group by coalesce(status, '')

-- a group with the name of its table
select i.title as item, sum(l.qty) as qty from line l join item i on i.sku = l.item where i.title is not null group by
i.title

-- a group with a column twice
select o.status as id, o.status, count(*) as n from orders o where o.status is not null group by o.status

-- a condition on the row that the columns of a group name
select l.item, i.title, count(*) as n from line l join item i on i.sku = l.item where i.title is not null and l.item is
not null group by l.item, i.title

-- with, name after name
with source as (select * from users), renamed as (select id as user_id, upper(name) as name, city from source where id
< 9), totals as (select user_id, count(*) as n, sum(total) as total from (select * from orders where id > 9) o group by
1), final as (select renamed.*, totals.n, coalesce(totals.total, 0) as total from renamed left join totals using
(user_id)) select * from final

-- with, twice
with n as (select user_id, count(*) as n from orders group by user_id) select u.id, a.n, b.n as of_city from users u
left join n a on a.user_id = u.id left join n b on b.user_id = u.city

-- a subquery of a subquery
select z.id, z.n from (select y.id, y.n from (select x.id, upper(x.name) as n, city from (select * from users) x) y where
y.n is not null) z

-- a subquery of joined tables
select s.id, s.who, s.country from (select o.id, u.name as who, c.country from orders o join users u on u.id = o.user_id
left join city c on c.id = u.city) s where s.country is not null or s.who = 'Dee'

-- a left join of expressions
select o.id, s.label, s.name from orders o left join (select id, coalesce(name, 'nobody') as label, name from users where
plan is not null) s on s.id = o.user_id

-- a grouped query around
select x.id, x.name, x.n from (select u.id, u.name, count(o.id) as n from users u left join orders o on o.user_id = u.id
group by u.id, u.name) x where x.n > 1 or x.name is null

-- groups with a row each
select x.city, x.n, c.name from (select city, count(*) as n from users where city is not null group by city) x left join
city c on c.id = x.city where x.n > 0

-- groups joined to groups
select a.user_id, a.n, b.streets from (select user_id, count(*) as n from orders where user_id > 0 group by user_id) a
join (select user_id, count(distinct street) as streets from address group by user_id) b on a.user_id = b.user_id

-- a subquery of a chain
select u.id, x.lines, x.worth, x.total, x.orders, x.top from users u left join (select o.user_id, count(*) as lines,
sum(l.qty * l.price) as worth, sum(o.total) as total, count(distinct o.id) as orders, max(o.at) as top from orders o
join line l on l.order_id = o.id group by o.user_id) x on x.user_id = u.id

-- an inner subquery of a chain
select u.id, x.lines from users u join (select o.user_id, count(*) as lines from line l join orders o on o.id =
l.order_id where l.price > o.total - 5 group by o.user_id) x on x.user_id = u.id

-- a subquery of a chain of left joins
select u.id, x.orders, x.lines from users u left join (select o.user_id, count(distinct o.id) as orders, count(l.number)
as lines from orders o left join line l on l.order_id = o.id group by o.user_id) x on x.user_id = u.id

-- a chain in an expression
select u.id, (select count(*) from orders o, line l where o.user_id = u.id and l.order_id = o.id) as lines, (select
coalesce(sum(l.qty * o.total), 0) from line l join orders o on l.order_id = o.id where o.user_id = u.id) as worth from
users u

-- expressions of a grouped subquery
select u.id, x.n, x.t, x.s from users u left join (select user_id, count(*) + 1 as n, coalesce(sum(total), 0) as t,
coalesce(max(status), 'none') as s from orders group by user_id) x on x.user_id = u.id

-- having in a left subquery
select u.id, x.n from users u left join (select user_id, count(*) as n from orders group by user_id having count(*) > 1)
x on x.user_id = u.id

-- having in an inner subquery
select u.id, x.n from users u join (select user_id, count(*) as n from orders group by user_id having sum(total) > 5) x
on x.user_id = u.id

-- having in an in and an exists
select u.id from users u where u.id in (select o.user_id from orders o group by o.user_id having count(*) > 1) or exists
(select 1 from address a where a.user_id = u.id group by a.user_id having count(*) = 1)

-- not in
select o.id from orders o where o.id not in (select l.order_id from line l where l.qty > 1)

-- subqueries in an aggregate
select u.id, json_agg(json_build_object('id', o.id, 'lines', (select count(*) from line l where l.order_id = o.id)) order
by o.id) filter (where o.id is not null) as orders, count(*) filter (where exists (select 1 from line l where l.order_id =
o.id)) as filled from users u join orders o on o.user_id = u.id group by u.id

-- a condition between a list and the row above
select u.id, count(o.id) as n, sum(o.total) as total from users u left join orders o on o.user_id = u.id and o.total >
u.city + 4 group by u.id

-- a condition between the rows of a chain
select u.id, count(*) as n from users u join orders o on o.user_id = u.id join line l on l.order_id = o.id left join item
i on i.sku = l.item where l.price < o.total and l.qty <= u.id + 1 group by u.id

-- grouped by the keys of two tables
select u.id, u.name, o.id as order_id, o.status, count(l.number) as lines from users u join orders o on o.user_id = u.id
left join line l on l.order_id = o.id group by u.id, u.name, o.id, o.status

-- aggregates of one row
select u.id, count(*) as n, sum(u.city) as s, count(u.plan) as plans, avg(u.id) as mean, json_agg(u.name) as names, max(c.name)
as city, count(*) filter (where u.id > 1) as late from users u left join city c on c.id = u.city group by u.id

-- texts of a list
select u.id, array_to_string(array_agg(o.status order by o.id), ', ') as statuses, (array_agg(o.status order by o.id
desc))[1] as last, (select array_to_string(array_agg(a.street order by a.id), '-') from address a where a.user_id = u.id)
as streets, coalesce(array_agg(o.id order by o.id) filter (where o.id is not null), array[]::bigint[]) as ids from users u
left join orders o on o.user_id = u.id group by u.id

-- the first row of each group
select user_id, status, total from (select *, row_number() over (partition by user_id order by total desc nulls last, id)
as rn from orders) o where rn = 1

-- the first row of each group, joined
select l.user_id, u.name, l.status, l.n from (select user_id, status, row_number() over (partition by user_id order by id)
as n from orders where user_id is not null) l left join users u on u.id = l.user_id where l.n <= 1 and l.status is not null

-- distinct on of all
select distinct on (status) status, id, total + 1 as more from orders where status is not null order by status, total desc
nulls last, id

-- distinct on of a joined list
select distinct on (u.id) u.id, u.name, o.status, o.total as most from users u left join orders o on o.user_id = u.id
order by u.id, o.total desc nulls last, o.id

-- right join
select u.id, count(o.id) as n from orders o right join users u on o.user_id = u.id group by u.id

-- natural and using
select * from (select id as user_id, name from users) u natural join (select user_id, id as order_id from orders) o

-- brackets, schemas and a name as PostgreSQL gives it
select o.id, upper(u.name), u.id::text || '!' as key, count(l.number) from (((orders o join users u on (u.id = o.user_id))
left join line l on (l.order_id = o.id))) group by o.id, u.name, u.id

-- a select around an expression
select u.id, (select exists (select 1 from orders o where o.user_id = u.id)) as buys from users u

-- levels of a tree
with recursive t as (select id, name, up, 0 as level, name as top, null::text as parent, name::text as path, name::text as
trail from node where up is null union all select n.id, n.name, n.up, t.level + 1, t.top, t.name, t.path || ' / ' ||
n.name, concat(t.trail, '>', n.name) from node n join t on n.up = t.id) select id, name, level, top, parent, path, trail
from t where level < 4

-- rows below a row
with recursive d(top, id, name, depth) as (select id, id, name, 0 from node union all select d.top, n.id, n.name, d.depth +
1 from node n join d on n.up = d.id) select n.id, (select json_agg(json_build_object('id', d.id, 'name', d.name, 'depth',
d.depth) order by d.depth, d.id) from d where d.top = n.id and d.depth > 0) as below from node n

-- rows below a row, from its children
with recursive d as (select up as top, id, 1 as depth from node where up is not null union all select d.top, n.id, 1 +
d.depth from d join node n on n.up = d.id) select n.id, (select count(*) from d where d.top = n.id) as n, (select
max(depth) from d where d.top = n.id) as deep from node n

-- rows above a row
with recursive a as (select id as start, id, up, name, 0 as depth from node union all select a.start, n.id, n.up, n.name,
a.depth + 1 from node n join a on n.id = a.up) select n.id, n.name, (select string_agg(a.name, ' > ' order by a.depth desc)
from a where a.start = n.id and a.depth > 0) as trail from node n

-- subqueries that choose rows of a group
select o.status, count(*) as n from orders o where o.status is not null and not exists (select 1 from line l where l.order_id
= o.id) and o.user_id in (select a.user_id from address a where a.main) group by o.status

-- subqueries that choose rows of a list
select u.id, count(*) as n from users u join orders o on o.user_id = u.id where exists (select 1 from line l where l.order_id
= o.id and l.qty > 1) group by u.id

-- values of the root in aggregates
select u.id, avg(u.city) as mean, sum(u.city) as total, count(u.plan) as plans, count(distinct u.plan) as kinds, max(u.name)
as name from users u left join orders o on o.user_id = u.id group by u.id

-- a grouped subquery for each row of a group
select u.plan, count(*) as n, sum(o.n) as orders, max(o.top) as top from users u left join (select user_id, count(*) as n,
max(total) as top from orders group by user_id) o on o.user_id = u.id group by u.plan

-- a grouped subquery for each row of a list
select u.id, count(*) as n, sum(x.lines) as lines from users u join orders o on o.user_id = u.id join (select order_id, count(*)
as lines from line group by order_id) x on x.order_id = o.id group by u.id

-- texts without repeats in a subquery
select u.id, x.kinds from users u left join (select user_id, string_agg(distinct status, ', ') as kinds from orders group by
user_id) x on x.user_id = u.id

-- a condition makes a left join an inner one
select i.sku, i.title, sum(l.qty) as qty from line l left join item i on i.sku = l.item where i.title is not null group by
i.sku, i.title

-- a subquery of a row that may be missing
select l.qty, count(*) as n, sum((select count(*) from line w where w.item = i.sku)) as same, count(*) filter (where not
exists (select 1 from line w where w.item = i.sku and w.price < 2)) as dear from line l left join item i on i.sku = l.item
where l.qty > 0 group by l.qty

-- a value of the root with a filter
select u.id, min(u.city) filter (where u.plan = 'pro') as city, count(*) as n from users u join orders o on o.user_id = u.id
group by u.id

-- numbers of rows
select o.id, row_number() over (partition by user_id order by at desc, id) * 2 as n, rank() over (partition by user_id order by
total desc nulls last) as r, dense_rank() over (partition by user_id order by id) as d, count(*) over (partition by user_id)
as of from orders o where user_id is not null

-- rows before and after
select l.order_id, l.number, lag(l.qty) over (partition by l.order_id order by l.number) as before, lead(l.item) over (partition
by l.order_id order by l.number) as after, lag(l.number, 1, 0) over (partition by order_id order by price desc, number desc) as
dear, first_value(l.item) over (partition by order_id order by qty nulls first, number) as first, i.title from line l left join
item i on i.sku = l.item

-- running totals
select o.id, sum(total) over (partition by user_id order by at) as t, sum(total) over (partition by user_id order by at nulls
first, id rows between unbounded preceding and current row) as u, round(total / sum(total) over (partition by user_id), 2) as
part, max(at) over (partition by status, user_id order by total range between unbounded preceding and current row) as m from
orders o where user_id is not null and status is not null

-- the first rows of each partition
with numbered as (select *, row_number() over (partition by order_id order by price desc, number) as n from line) select order_id,
number, n, item from numbered where n <= 1 + order_id % 2

-- a row that differs from the one before
select x.id, x.total - x.before as more from (select id, total, lag(total) over (partition by user_id order by id) as before from
orders where user_id is not null) x where x.total > x.before

-- a total
select count(*) as n, sum(total) as total, count(distinct status) + 1 as kinds, json_agg(id order by id) filter (where total > 4)
as ids from orders where status = 'open'

-- a total of another table than the first
select sum(l.qty * l.price) as worth, count(distinct o.user_id) as users, max(u.name) as last from users u join orders o on
o.user_id = u.id join line l on l.order_id = o.id having count(*) > 1

-- a total in each row
select o.id, o.total > (select avg(total) from orders) as dear, (select count(*) from users where plan = 'pro') as pros from
orders o where o.total < (select sum(qty) + 3 from line)

-- brackets and casts, as databases print them
select u.id, c.name as city, t.title as country, (a.n)::int as addresses from (((users u join city c on ((c.id = u.city))) left
join country t on (((t.code)::text = (c.country)::text))) left join (select user_id, count(*) as n from address group by user_id)
a on ((a.user_id = u.id)))
