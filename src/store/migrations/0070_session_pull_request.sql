-- works-from: 0027
-- How its pull requests are opened (pullRequestSettingsSchema of src/domain/repositories/pull-request-settings.ts); null: as usual.
alter table session add column pull_request jsonb;
