-- needs:
-- First day of the present month in UTC, as model_spend.month has it.
-- Callers: month_budget_left, spend_budget.
create or replace function this_month() returns date language sql stable as $$
  select date_trunc('month', now() at time zone 'utc')::date
$$;
