-- The rows that the three programs write. Run ../postgresql/fence.sql and this file once in the database.
CREATE TABLE IF NOT EXISTS primes (
    job     uuid NOT NULL,
    number  bigint NOT NULL,
    attempt bigint NOT NULL,
    PRIMARY KEY (job, number)
);
