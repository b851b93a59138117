-- needs: enqueue_webhooks
-- Tells the organization's webhooks of a job's status.
-- Measured: 101 µs, 24 pages: the organization has one webhook.
-- Callers: fire_trigger, fire_triggers, move_job, src/store/automations/jobs.ts.
create or replace function enqueue_job_webhooks(changed job) returns void language plpgsql as $$
begin
  perform enqueue_webhooks(changed.organization_id, 'job.' || changed.status, jsonb_build_object(
    'id', changed.id, 'status', changed.status, 'automationId', changed.automation_id,
    'sessionId', changed.session_id, 'error', changed.error));
end $$;
