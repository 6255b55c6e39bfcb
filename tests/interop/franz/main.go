// Writes the records it is told to a topic with franz-go, reads them back and prints them, one in a line.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type order struct {
	Bootstrap, Topic, CA, Certificate, Key string
	Mechanism, User, Password, Bearer      string
	IsToken                                bool
	Seconds                                int
	Values                                 []string
}

func main() {
	var given order
	check(json.NewDecoder(os.Stdin).Decode(&given))
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(given.Seconds)*time.Second)
	defer cancel()
	options := []kgo.Opt{kgo.SeedBrokers(given.Bootstrap), kgo.DialTLSConfig(given.tls())}
	if mechanism := given.mechanism(); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	write(ctx, given, options)
	read(ctx, given, options)
}

func (o order) tls() *tls.Config {
	text, err := os.ReadFile(o.CA)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	config := &tls.Config{RootCAs: roots}
	if o.Certificate != "" {
		own, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
		check(err)
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

func (o order) mechanism() sasl.Mechanism {
	secret := scram.Auth{User: o.User, Pass: o.Password, IsToken: o.IsToken}
	switch o.Mechanism {
	case "PLAIN":
		return plain.Auth{User: o.User, Pass: o.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return secret.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return secret.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: o.Bearer}.AsMechanism()
	}
	return nil
}

func write(ctx context.Context, given order, options []kgo.Opt) {
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	var records []*kgo.Record
	for _, value := range given.Values {
		records = append(records, &kgo.Record{Topic: given.Topic, Value: []byte(value)})
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
}

func read(ctx context.Context, given order, options []kgo.Opt) {
	group := []kgo.Opt{
		kgo.ConsumerGroup(given.Topic),
		kgo.ConsumeTopics(given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	client, err := kgo.NewClient(append(options, group...)...)
	check(err)
	defer client.Close()
	for found := 0; found < len(given.Values); {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			found++
		})
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
