-- works-from: 0027
-- What to do about a session's failure is its `remedy`, which was `mend` before. Only failed sessions, their events and the
-- deliveries that report them are changed, so no claim, lease or renewal waits for this. A session keeps `mend` beside it: nodes
-- of the version before can't show a failure without it (move_session.sql). A later migration removes it.
update session set failure = failure || jsonb_build_object('remedy', failure -> 'mend')
where failure ? 'mend' and not failure ? 'remedy';
update event set data = jsonb_set(data #- '{failure,mend}', '{failure,remedy}', data #> '{failure,mend}')
where type in ('session.status', 'step.failed') and data #> '{failure,mend}' is not null;
update webhook_delivery set data = jsonb_set(data #- '{failure,mend}', '{failure,remedy}', data #> '{failure,mend}')
where type = 'session.failed' and data #> '{failure,mend}' is not null;
