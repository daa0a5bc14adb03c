-- +goose Up

-- An application that an operator rejects has the status finished and the result fail. The view counted it among none of those that
-- ended. In a schema beside the live one the migration of the last views has dropped them.
-- +goose StatementBegin
DO $migration$
DECLARE
    home text := quote_ident(current_schema());
BEGIN
    IF COALESCE(current_setting('perpetua.scratch', true), '') = 'on' THEN
        RETURN;
    END IF;
    PERFORM set_config('search_path', 'analytics, ' || home, true);

    CREATE OR REPLACE VIEW onboarding_funnel AS
    SELECT c.day, c.tenant, c.entitlement_id, c.entitlement, c.owner_type, count(*) AS created, count(c.started_at) AS started,
        count(*) FILTER (WHERE c.requests > 0) AS asked_for_more, count(c.video_at) AS video, count(*) FILTER (WHERE c.result = 'success') AS succeeded,
        count(*) FILTER (WHERE c.status = 'failed') AS failed, count(*) FILTER (WHERE c.status = 'canceled') AS canceled,
        count(*) FILTER (WHERE c.status = 'terminated') AS terminated,
        count(*) FILTER (WHERE c.result IS NULL) AS open, avg(c.ended_at - c.created_at) FILTER (WHERE c.result = 'success') AS time_to_success,
        max(c.sequence) AS sequence, count(*) FILTER (WHERE c.status = 'finished' AND c.result = 'fail') AS rejected
    FROM onboarding_cases c
    GROUP BY c.day, c.tenant, c.entitlement_id, c.entitlement, c.owner_type;
    COMMENT ON COLUMN onboarding_funnel.failed IS 'Those that ended with the status failed.';
    COMMENT ON COLUMN onboarding_funnel.rejected IS 'Those that were rejected: the status is finished, and the result fail. Those created are the sum of succeeded, rejected, failed, canceled, terminated and open.';

    PERFORM set_config('search_path', home, true);
END $migration$;
-- +goose StatementEnd
