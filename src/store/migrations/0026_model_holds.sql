-- works-from: 0022
-- What requests of models that are under way can cost at most, held back of budgets until it is known. A row is removed in the
-- statement that counts what was spent; where a worker died before, it counts as spent when it expires.
create table model_hold (
  id uuid primary key default gen_random_uuid(),
  session_id uuid not null references session on delete cascade,
  organization_id uuid not null references organization,
  held_usd numeric(14, 6) not null check (held_usd >= 0),
  -- Longer than any answer takes.
  expires_at timestamptz not null default now() + interval '2 hours'
);
create index model_hold_session on model_hold (session_id);
create index model_hold_organization on model_hold (organization_id, session_id);

-- As before; of other sessions what they reserved or what their requests hold, whichever is more, and of its own what they hold.
create or replace function month_budget_left(asked session) returns numeric language plpgsql stable
  set plan_cache_mode to force_generic_plan as $$
declare
  budget numeric;
begin
  select monthly_budget_usd into budget from organization where organization.id = asked.organization_id;
  if budget is null then return null; end if;
  return budget
    - coalesce((select spent_usd from model_spend
        where model_spend.organization_id = asked.organization_id and month = this_month()), 0)
    - coalesce((select sum(greatest(reserved.usd, held.usd)) from
        (select id, reserved_usd as usd from session
          where session.organization_id = asked.organization_id and status = 'running' and id <> asked.id) as reserved
        full join (select session_id, sum(held_usd) as usd from model_hold
          where model_hold.organization_id = asked.organization_id group by session_id) as held
        on held.session_id = reserved.id), 0);
end $$;

-- Counts dollars as spent, by whoever held the session.
create function spend_budget(asked uuid, organization uuid, dollars numeric) returns void language plpgsql as $$
begin
  update session set spent_usd = spent_usd + dollars, reserved_usd = greatest(0, reserved_usd - dollars) where id = asked;
  insert into model_spend (organization_id, month, spent_usd) values (organization, this_month(), dollars)
    on conflict (organization_id, month) do update set spent_usd = model_spend.spent_usd + excluded.spent_usd;
end $$;

-- Holds back what a request can cost, of the session's budget and of the month's. The organization is locked, so that no two
-- requests hold the same money.
-- @param needed, at_least dollars: as much of `needed` as there is, but nothing where there is less than `at_least`
-- @returns hold null where nothing is held: there is no budget, or not enough of it
create function hold_budget(asked uuid, needed numeric, at_least numeric)
returns table (hold uuid, held numeric, session_left numeric, month_left numeric) language plpgsql rows 1 as $$
declare
  own record;
  expired record;
  most numeric;
begin
  select session.organization_id as organization, session_budget_left(session) as session_usd,
      month_budget_left(session) as month_usd
    into own from session where id = asked;
  if own.session_usd is null and own.month_usd is null then
    return next;
    return;
  end if;
  perform from organization where id = own.organization for no key update;
  for expired in
    delete from model_hold where organization_id = own.organization and expires_at < now() returning session_id, held_usd
  loop
    perform spend_budget(expired.session_id, own.organization, expired.held_usd);
  end loop;
  -- Another statement: it sees what was held and spent until the lock was had.
  select session_budget_left(session)
      - coalesce((select sum(held_usd) from model_hold where session_id = asked), 0), month_budget_left(session)
    into session_left, month_left from session where id = asked;
  -- No row of a limit is less than any.
  most := least(needed, session_left, month_left);
  if most >= at_least then
    insert into model_hold (session_id, organization_id, held_usd) values (asked, own.organization, most)
      returning id, held_usd into hold, held;
  end if;
  return next;
end $$;

-- Ends a hold, and counts what was spent in its place; what expired was counted already.
-- @param hold null: nothing was held
create function settle_budget(asked uuid, organization uuid, hold uuid, dollars numeric) returns void language plpgsql as $$
begin
  if hold is not null then
    delete from model_hold where id = hold;
    if not found then return; end if;
  end if;
  if dollars > 0 then perform spend_budget(asked, organization, dollars); end if;
end $$;
