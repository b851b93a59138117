-- needs:
-- First day of the present month in UTC, as model_spend.month has it.
-- Measured: 0.1 µs, 0 pages: a row, of 10,000.
-- Callers: month_budget_left, spend_budget, src/store/people/organizations.ts.
create or replace function this_month() returns date language sql stable as $$
  select date_trunc('month', now() at time zone 'utc')::date
$$;
