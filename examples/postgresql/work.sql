-- The worker's transaction. It starts with the fencing token. The job runs it with:
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -v job="$HOLDFAST_JOB_UID" -v attempt="$HOLDFAST_ATTEMPT" -f work.sql
BEGIN;
SELECT holdfast_fence(:'job', :attempt);
INSERT INTO results (job, attempt, rows) VALUES (:'job', :attempt, 42)
    ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, rows = excluded.rows;
COMMIT;
