-- works-from: 0022

-- What an admin lets pass of what looks like a secret in work that is to be pushed: src/domain/finding.ts.
alter table repository add column allowed_findings jsonb not null default '[]';

-- Of a repository that is connected again, the one before.
create index repository_gone on repository (organization_id, address_key, deleted_at desc) where deleted_at is not null;
