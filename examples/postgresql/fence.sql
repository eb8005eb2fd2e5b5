-- Makes PostgreSQL refuse what an old attempt of a DurableJob writes late. Run it once in the
-- database; then each transaction of a worker begins with
--
--   SELECT holdfast_fence(:'job', :attempt);     -- HOLDFAST_JOB_UID, HOLDFAST_ATTEMPT
--
-- From a successor's first transaction on, an older attempt's fail (SQLSTATE HF001). One that is
-- open at that moment holds the successor up until it ends: it may still commit, for it came first;
-- if its worker is silent for `patience`, the server ends its session.
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
        -- Shared: transactions of one attempt run side by side, and a successor's waits for them.
        SELECT f.attempt INTO newest FROM holdfast_fences f WHERE f.job = holdfast_fence.job
            FOR SHARE;
    END IF;
    IF newest > attempt THEN
        RAISE EXCEPTION 'fenced: attempt % of job % is over, attempt % has begun', attempt, job, newest
            USING ERRCODE = 'HF001';
    END IF;
END
$$;
