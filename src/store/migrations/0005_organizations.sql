-- What an organization's admins decide for all of its sessions.
alter table organization
  add column egress text[] not null default '{}',
  -- Patterns of models that may be asked; null: all that the server allows.
  add column models text[],
  -- US dollars; null: no limit.
  add column session_budget_usd numeric(14, 6) check (session_budget_usd >= 0),
  add column run_budget_usd numeric(14, 6) check (run_budget_usd >= 0),
  add column monthly_budget_usd numeric(14, 6) check (monthly_budget_usd >= 0);
alter table automation add column budget_usd numeric(14, 6) check (budget_usd >= 0);

alter table session
  -- Set for this session alone, by an admin.
  add column budget_usd numeric(14, 6) check (budget_usd >= 0),
  add column spent_usd numeric(14, 6) not null default 0,
  -- Held back of the month's budget while it runs, so that sessions that run at once can't spend the same money.
  add column reserved_usd numeric(14, 6) not null default 0,
  -- What a waiting session waits for: {reason, text}.
  add column waiting jsonb,
  -- A waiting session that can go on, to be claimed.
  add column ready boolean not null default false;
create index session_ready on session (organization_id) where status = 'waiting' and ready;
create index session_waiting on session (organization_id) where status = 'waiting';

create table model_spend (
  organization_id uuid not null references organization,
  -- First day, in UTC.
  month date not null,
  spent_usd numeric(14, 6) not null,
  primary key (organization_id, month)
);

create function this_month() returns date language sql stable as $$
  select date_trunc('month', now() at time zone 'utc')::date
$$;

-- What a session may still spend by its own budget; null: no limit.
create function session_budget_left(asked session) returns numeric language sql stable as $$
  select coalesce(asked.budget_usd,
      case when asked.automation_id is null then organization.session_budget_usd
        else least(automation.budget_usd, coalesce(organization.run_budget_usd, organization.session_budget_usd)) end)
    - asked.spent_usd
  from organization left join automation on automation.id = asked.automation_id
  where organization.id = asked.organization_id
$$;

-- What it may still spend of the organization's month, beside what others that run have reserved; null: no limit.
create function month_budget_left(asked session) returns numeric language sql stable as $$
  select organization.monthly_budget_usd
    - coalesce((select spent_usd from model_spend
        where model_spend.organization_id = organization.id and month = this_month()), 0)
    - coalesce((select sum(other.reserved_usd) from session other
        where other.organization_id = organization.id and other.status = 'running' and other.id <> asked.id), 0)
  from organization where organization.id = asked.organization_id
$$;
