-- needs: this_month
-- Counts US dollars as spent by a session and in its organization's month, even if no worker holds the session any more: the
-- money is spent.
-- Measured: 92 µs, 16 pages: the month has a row already.
-- Callers: hold_budget, settle_budget.
create or replace function spend_budget(asked uuid, organization uuid, dollars numeric) returns void language plpgsql as $$
begin
  update session set spent_usd = spent_usd + dollars, reserved_usd = greatest(0, reserved_usd - dollars) where id = asked;
  insert into model_spend (organization_id, month, spent_usd) values (organization, this_month(), dollars)
    on conflict (organization_id, month) do update set spent_usd = model_spend.spent_usd + excluded.spent_usd;
end $$;
