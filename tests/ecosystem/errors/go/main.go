// Does steps of a transaction with franz-go, one for each line of JSON, and answers each with a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type step struct {
	Step            string
	Servers         string
	TransactionalID string `json:"transactional_id"`
	PatienceMs      int    `json:"patience_ms"`
	Topic           string
	Value           string
}

type answer struct {
	Error string   `json:"error"`
	Says  []string `json:"says"`
}

var client *kgo.Client
var patience time.Duration

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked step
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := perform(asked); err != nil {
			told, _ := json.Marshal(tell(err))
			fmt.Println(string(told))
		} else {
			fmt.Println("{}")
		}
	}
}

// The name that Kafka has for an error, or Go's own, and whether franz-go takes it to be retriable.
func tell(err error) answer {
	var refused *kerr.Error
	says := []string{}
	if errors.As(err, &refused) {
		if refused.Retriable {
			says = append(says, "retriable")
		}
		return answer{"kerr: " + refused.Message, says}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return answer{"context.DeadlineExceeded", says}
	}
	return answer{fmt.Sprintf("%T", err), says}
}

func perform(asked step) error {
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch asked.Step {
	case "open":
		return open(asked)
	case "begin":
		return client.BeginTransaction()
	case "send":
		record := &kgo.Record{Topic: asked.Topic, Value: []byte(asked.Value)}
		return client.ProduceSync(within, record).FirstErr()
	case "commit":
		return client.EndTransaction(within, kgo.TryCommit)
	case "abort":
		return client.EndTransaction(within, kgo.TryAbort)
	case "close":
		client.Close()
	}
	return nil
}

func open(asked step) (err error) {
	patience = time.Duration(asked.PatienceMs) * time.Millisecond
	client, err = kgo.NewClient(kgo.SeedBrokers(asked.Servers), kgo.TransactionalID(asked.TransactionalID))
	return err
}
