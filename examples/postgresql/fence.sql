-- With this function PostgreSQL refuses late writes of a replaced attempt of a DurableJob. Run this file
-- once in the database. Then start each transaction of a worker with:
--
--   SELECT holdfast_fence(:'job', :attempt);     -- HOLDFAST_JOB_UID, HOLDFAST_ATTEMPT
--
-- In a job with many runs each run needs a key of its own. Otherwise the runs refuse each other's writes:
--
--   SELECT holdfast_fence(md5(:'job' || '/' || :'index')::uuid, :attempt);     -- and JOB_COMPLETION_INDEX
--
-- After the new attempt's first transaction, every transaction of an older attempt fails (SQLSTATE HF001).
-- If an older transaction is open at that moment, the new attempt waits for its end. The older one may
-- still commit, because it came first. If its worker is silent for `patience`, the server ends its session.
CREATE TABLE IF NOT EXISTS holdfast_fences (
    job     uuid PRIMARY KEY,
    attempt bigint NOT NULL CHECK (attempt > 0)
);

CREATE OR REPLACE FUNCTION holdfast_fence(job uuid, attempt bigint, patience interval DEFAULT '30 s')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout',
                       (extract(epoch FROM patience) * 1000)::bigint::text, true);
    SELECT f.attempt INTO newest FROM holdfast_fences f WHERE f.job = holdfast_fence.job;
    IF newest IS NULL OR newest < attempt THEN
        INSERT INTO holdfast_fences AS f VALUES (job, attempt)
            ON CONFLICT ON CONSTRAINT holdfast_fences_pkey
            DO UPDATE SET attempt = greatest(f.attempt, excluded.attempt)
            RETURNING f.attempt INTO newest;
    ELSE
        -- A shared lock: transactions of one attempt run in parallel. The next attempt waits for them.
        SELECT f.attempt INTO newest FROM holdfast_fences f WHERE f.job = holdfast_fence.job
            FOR SHARE;
    END IF;
    IF newest > attempt THEN
        RAISE EXCEPTION 'fenced: attempt % of job % is over, attempt % has begun', attempt, job, newest
            USING ERRCODE = 'HF001';
    END IF;
END
$$;
