-- works-from: 0027
-- outside a transaction
-- Our section of a pull request's text: src/store/repositories/pull-request-sections.ts.
alter table pull_request
  -- When it is looked at whether the section still says what is so; null: nothing has changed.
  add column if not exists section_due_at timestamptz,
  -- How often in a row it could not be written.
  add column if not exists section_attempts integer not null default 0,
  -- Hash of what was written last.
  add column if not exists section_told text,
  -- Until when somebody reads and writes the text: forges know no condition for a write, so ours are one after the other.
  add column if not exists editing_until timestamptz,
  -- approvalRulesSchema of src/domain/repositories/approval.ts, as they were when it was opened; null: the forge does not say.
  add column if not exists approval jsonb;
drop index concurrently if exists pull_request_section_due;
create index concurrently pull_request_section_due on pull_request (section_due_at) where section_due_at is not null;
