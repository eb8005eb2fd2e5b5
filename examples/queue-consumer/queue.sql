-- A queue of messages in PostgreSQL. Run this file once in the database. To send a message:
--
--   INSERT INTO messages (body) VALUES ('17.jpg');
--
-- `delivery` grows each time when a consumer takes the message. It is the token of that delivery: only the newest one
-- may finish the message.
CREATE TABLE IF NOT EXISTS messages (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body       text NOT NULL,
    delivery   bigint NOT NULL DEFAULT 0,
    job        uuid,                                   -- who has it: the run of a job, and its attempt
    run        int,
    attempt    bigint,
    visible_at timestamptz NOT NULL DEFAULT now()      -- from then on, any consumer may take it
);

-- What became of each message. The primary key refuses a second result.
CREATE TABLE IF NOT EXISTS processed (
    message  bigint PRIMARY KEY,
    delivery bigint NOT NULL,
    result   text NOT NULL
);
