-- works-from: 0027
-- The mail that takes the link of an invitation to the person, and goes with that link. Nodes of the version before write and send none.
create table invitation_mail (
  id uuid primary key,
  organization_id uuid not null references organization,
  -- A person has one link that is good, and one mail with it.
  user_id uuid not null unique references user_account on delete cascade,
  link_hash bytea not null unique references login_link on delete cascade,
  language text not null,
  -- The link's token, for as long as it is to be sent.
  sealed bytea,
  master_key text,
  status text not null default 'pending' check (status in ('pending', 'sent', 'dead')),
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  problem text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  check ((status = 'pending') = (sealed is not null)),
  check ((sealed is null) = (master_key is null))
);
create index invitation_mail_due on invitation_mail (next_attempt_at) where status = 'pending';
create index invitation_mail_of_organization on invitation_mail (organization_id);
