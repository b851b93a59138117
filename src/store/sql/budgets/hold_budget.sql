-- needs: month_budget_left, session_budget_left, spend_budget
-- Holds back what a request to a model can cost, of the session's budget and of the month's. The organization's row is
-- locked, so that no two requests hold the same money. In the database, so that the lock lasts no round trip.
-- Measured: 268 µs, 45 pages: the session and the month have budgets, twenty sessions run.
-- Callers: src/store/queue/budgets.ts.
-- @param needed, at_least US dollars: as much of `needed` as there is, but nothing if there is less than `at_least`
-- @returns hold null: nothing is held, because there is no budget or not enough of it
create or replace function hold_budget(asked uuid, needed numeric, at_least numeric)
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
  -- If a worker died before it settled a hold, the hold counts as spent.
  for expired in
    delete from model_hold where organization_id = own.organization and expires_at < now() returning session_id, held_usd
  loop
    perform spend_budget(expired.session_id, own.organization, expired.held_usd);
  end loop;
  -- A statement of its own: it sees what others held and spent before this one had the lock.
  select session_budget_left(session)
      - coalesce((select sum(held_usd) from model_hold where session_id = asked), 0), month_budget_left(session)
    into session_left, month_left from session where id = asked;
  -- `least` passes over null, which is no limit.
  most := least(needed, session_left, month_left);
  if most >= at_least then
    insert into model_hold (session_id, organization_id, held_usd) values (asked, own.organization, most)
      returning id, held_usd into hold, held;
  end if;
  return next;
end $$;
