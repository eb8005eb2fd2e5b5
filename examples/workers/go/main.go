// Command primes writes the prime numbers of a range into PostgreSQL, page by page. It is the command of a
// WorkerPool: ../README.md says what it reads and writes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	exitBadPayload = 65 // ../job.yaml fails the job on this exit code, because no later attempt can help
	pause          = 500 * time.Millisecond
)

var errBadPayload = errors.New("bad payload")

// A payload is the range, and how many numbers are one page.
type payload struct {
	From     int64 `json:"from"`
	To       int64 `json:"to"`
	PageSize int64 `json:"pageSize"`
}

type message struct {
	Pause bool `json:"pause"`
	Stop  bool `json:"stop"`
}

type result struct {
	Primes int64 `json:"primes"`
	UpTo   int64 `json:"upTo"`
}

// A worker is one attempt of a job.
type worker struct {
	job      string
	attempt  int64
	database *pgx.Conn
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errBadPayload) {
			os.Exit(exitBadPayload)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	in, err := readPayload(os.Stdin)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadPayload, err)
	}
	attempt, err := strconv.ParseInt(os.Getenv("HOLDFAST_ATTEMPT"), 10, 64)
	if err != nil {
		return fmt.Errorf("HOLDFAST_ATTEMPT: %w", err)
	}
	// PGHOST and the other variables of libpq say where the database is.
	database, err := pgx.Connect(ctx, "")
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer database.Close(ctx)
	w := worker{job: os.Getenv("HOLDFAST_JOB_UID"), attempt: attempt, database: database}
	out, err := w.work(ctx, in)
	if err != nil {
		return err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv("HOLDFAST_RESULT_FILE"), text, 0o600)
}

func readPayload(from io.Reader) (payload, error) {
	var in payload
	text, err := io.ReadAll(from)
	if err != nil {
		return in, err
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return in, err
	}
	if in.From < 1 || in.To < in.From || in.To > 1_000_000_000 || in.PageSize < 1 || in.PageSize > 100_000 {
		return in, errors.New("it needs 1 <= from <= to <= 1000000000 and 1 <= pageSize <= 100000")
	}
	return in, nil
}

func (w worker) work(ctx context.Context, in payload) (result, error) {
	done := in.From - 1
	if checkpoint := os.Getenv("HOLDFAST_CHECKPOINT"); checkpoint != "" {
		var err error
		if done, err = strconv.ParseInt(checkpoint, 10, 64); err != nil {
			return result{}, fmt.Errorf("HOLDFAST_CHECKPOINT: %w", err)
		}
	}
	for done < in.To {
		end := min(done+in.PageSize, in.To)
		if err := w.writePage(ctx, primes(done+1, end)); err != nil {
			return result{}, fmt.Errorf("database: %w", err)
		}
		done = end
		tellAgent("checkpoint", strconv.FormatInt(done, 10))
		tellAgent("progress", fmt.Sprintf("%d of %d", done, in.To))
		if done < in.To && !mayGoOn(done) {
			break
		}
	}
	out := result{UpTo: done}
	row := w.database.QueryRow(ctx, "SELECT count(*) FROM primes WHERE job = $1", w.job)
	if err := row.Scan(&out.Primes); err != nil {
		return result{}, fmt.Errorf("database: %w", err)
	}
	return out, nil
}

// writePage is one transaction. It starts with the fence, so a replaced attempt cannot write. A page may be
// written twice: a page whose checkpoint was lost comes again.
func (w worker) writePage(ctx context.Context, numbers []int64) error {
	return pgx.BeginFunc(ctx, w.database, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT holdfast_fence($1, $2)", w.job, w.attempt); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO primes (job, number, attempt)
			SELECT $1::uuid, unnest($2::bigint[]), $3::bigint ON CONFLICT DO NOTHING`,
			w.job, numbers, w.attempt)
		return err
	})
}

func primes(from, to int64) []int64 {
	found := []int64{}
	for number := from; number <= to; number++ {
		if isPrime(number) {
			found = append(found, number)
		}
	}
	return found
}

func isPrime(number int64) bool {
	for factor := int64(2); factor*factor <= number; factor++ {
		if number%factor == 0 {
			return false
		}
	}
	return number > 1
}

// tellAgent reports to the agent. A report that fails costs at most repeated work.
func tellAgent(words ...string) {
	agent := os.Getenv("AGENT_PROGRAM")
	if agent == "" {
		agent = "/holdfast/agent"
	}
	command := exec.Command(agent, words...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", agent, words[0], err)
	}
}

// mayGoOn waits while the job's message says pause. It is false if the message says stop.
func mayGoOn(done int64) bool {
	for {
		now := readMessage()
		if now.Stop || !now.Pause {
			return !now.Stop
		}
		// A pause is no hang, so it reports progress too.
		tellAgent("progress", fmt.Sprintf("paused at %d", done))
		time.Sleep(pause)
	}
}

// readMessage returns an empty message if the job's message is no JSON object of these fields.
func readMessage() message {
	text, err := os.ReadFile(os.Getenv("HOLDFAST_MESSAGE_FILE"))
	if err != nil {
		return message{}
	}
	var now message
	if json.Unmarshal(text, &now) != nil {
		return message{}
	}
	return now
}
