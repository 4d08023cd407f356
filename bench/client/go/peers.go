package main

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mediocregopher/radix/v4"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var peers = []string{"rueidis", "go-redis", "go-redis-pipeline", "radix", "redigo"}

// A client behind the calls that are compared. None of them says whether a request without a reply was sent.
type peer interface {
	getIs(ctx context.Context, key string, value []byte) (bool, error)
	set(ctx context.Context, key string, value []byte) error
	incr(ctx context.Context, key string) (int64, error)
	// In one batch.
	setAll(ctx context.Context, keys []string, values [][]byte) error
	getAre(ctx context.Context, keys []string, values [][]byte) (bool, error)
}

func connect(o options) peer {
	addresses := strings.Split(o.address, ",")
	// The path of a socket stands behind this.
	network, address := "tcp", o.address
	if path, isUnix := strings.CutPrefix(o.address, "unix:"); isUnix {
		network, address = "unix", path
	}
	isCluster := o.scenario == "cluster"
	switch o.peer {
	case "rueidis":
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses, DisableCache: true})
		must(err)
		return ofRueidis{client}
	case "go-redis":
		if isCluster {
			return ofGoRedis{goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addresses})}
		}
		return ofGoRedis{goredis.NewClient(&goredis.Options{Network: network, Addr: address})}
	case "go-redis-pipeline":
		client, err := goredis.NewClient(&goredis.Options{Network: network, Addr: address}).
			AutoPipelineWithOptions(&goredis.AutoPipelineOptions{FullDuplex: true})
		must(err)
		return ofGoRedis{client}
	case "radix":
		if isCluster {
			client, err := radix.ClusterConfig{}.New(context.Background(), addresses)
			must(err)
			return ofRadix{client}
		}
		client, err := radix.PoolConfig{}.New(context.Background(), network, address)
		must(err)
		return ofRadix{client}
	case "redigo":
		dial := func() (redis.Conn, error) { return redis.Dial(network, address) }
		// As many connections as callers: it has no other way to serve them at once.
		return ofRedigo{&redis.Pool{Dial: dial, MaxIdle: 1000, MaxActive: 1000, Wait: true}}
	}
	panic("the client is not known: --list names all")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type ofRueidis struct{ client rueidis.Client }

func (p ofRueidis) getIs(ctx context.Context, key string, value []byte) (bool, error) {
	found, err := p.client.Do(ctx, p.client.B().Get().Key(key).Build()).ToString()
	return found == string(value), err
}

func (p ofRueidis) set(ctx context.Context, key string, value []byte) error {
	return p.client.Do(ctx, p.client.B().Set().Key(key).Value(rueidis.BinaryString(value)).Build()).Error()
}

func (p ofRueidis) incr(ctx context.Context, key string) (int64, error) {
	return p.client.Do(ctx, p.client.B().Incr().Key(key).Build()).ToInt64()
}

func (p ofRueidis) setAll(ctx context.Context, keys []string, values [][]byte) error {
	commands := make(rueidis.Commands, len(keys))
	for at, key := range keys {
		commands[at] = p.client.B().Set().Key(key).Value(rueidis.BinaryString(values[at])).Build()
	}
	for _, reply := range p.client.DoMulti(ctx, commands...) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}

func (p ofRueidis) getAre(ctx context.Context, keys []string, values [][]byte) (bool, error) {
	commands := make(rueidis.Commands, len(keys))
	for at, key := range keys {
		commands[at] = p.client.B().Get().Key(key).Build()
	}
	are := true
	for at, reply := range p.client.DoMulti(ctx, commands...) {
		found, err := reply.ToString()
		if err != nil {
			return false, err
		}
		are = are && found == string(values[at])
	}
	return are, nil
}

type ofGoRedis struct{ client goredis.Cmdable }

func (p ofGoRedis) getIs(ctx context.Context, key string, value []byte) (bool, error) {
	found, err := p.client.Get(ctx, key).Bytes()
	return bytes.Equal(found, value), err
}

func (p ofGoRedis) set(ctx context.Context, key string, value []byte) error {
	return p.client.Set(ctx, key, value, 0).Err()
}

func (p ofGoRedis) incr(ctx context.Context, key string) (int64, error) {
	return p.client.Incr(ctx, key).Result()
}

func (p ofGoRedis) setAll(ctx context.Context, keys []string, values [][]byte) error {
	_, err := p.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for at, key := range keys {
			pipe.Set(ctx, key, values[at], 0)
		}
		return nil
	})
	return err
}

func (p ofGoRedis) getAre(ctx context.Context, keys []string, values [][]byte) (bool, error) {
	found := make([]*goredis.StringCmd, len(keys))
	_, err := p.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for at, key := range keys {
			found[at] = pipe.Get(ctx, key)
		}
		return nil
	})
	are := true
	for at, value := range values {
		text, _ := found[at].Bytes()
		are = are && bytes.Equal(text, value)
	}
	return are, err
}

type ofRadix struct{ client radixClient }

type radixClient interface {
	Do(ctx context.Context, action radix.Action) error
}

func (p ofRadix) getIs(ctx context.Context, key string, value []byte) (bool, error) {
	var found []byte
	err := p.client.Do(ctx, radix.Cmd(&found, "GET", key))
	return bytes.Equal(found, value), err
}

func (p ofRadix) set(ctx context.Context, key string, value []byte) error {
	return p.client.Do(ctx, radix.FlatCmd(nil, "SET", key, value))
}

func (p ofRadix) incr(ctx context.Context, key string) (count int64, err error) {
	err = p.client.Do(ctx, radix.Cmd(&count, "INCR", key))
	return
}

func (p ofRadix) setAll(ctx context.Context, keys []string, values [][]byte) error {
	pipeline := radix.NewPipeline()
	for at, key := range keys {
		pipeline.Append(radix.FlatCmd(nil, "SET", key, values[at]))
	}
	return p.client.Do(ctx, pipeline)
}

func (p ofRadix) getAre(ctx context.Context, keys []string, values [][]byte) (bool, error) {
	pipeline, found := radix.NewPipeline(), make([][]byte, len(keys))
	for at, key := range keys {
		pipeline.Append(radix.Cmd(&found[at], "GET", key))
	}
	err := p.client.Do(ctx, pipeline)
	are := true
	for at, value := range values {
		are = are && bytes.Equal(found[at], value)
	}
	return are, err
}

type ofRedigo struct{ pool *redis.Pool }

func (p ofRedigo) do(ctx context.Context, name string, arguments ...any) (any, error) {
	conn, err := p.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return redis.DoContext(conn, ctx, name, arguments...)
}

func (p ofRedigo) getIs(ctx context.Context, key string, value []byte) (bool, error) {
	found, err := redis.Bytes(p.do(ctx, "GET", key))
	return bytes.Equal(found, value), err
}

func (p ofRedigo) set(ctx context.Context, key string, value []byte) error {
	_, err := p.do(ctx, "SET", key, value)
	return err
}

func (p ofRedigo) incr(ctx context.Context, key string) (int64, error) {
	return redis.Int64(p.do(ctx, "INCR", key))
}

func (p ofRedigo) all(ctx context.Context, count int, send func(conn redis.Conn, at int) error) ([]any, error) {
	conn, err := p.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for at := range count {
		if err := send(conn, at); err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, count)
	for at := range replies {
		if replies[at], err = conn.Receive(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func (p ofRedigo) setAll(ctx context.Context, keys []string, values [][]byte) error {
	send := func(conn redis.Conn, at int) error { return conn.Send("SET", keys[at], values[at]) }
	_, err := p.all(ctx, len(keys), send)
	return err
}

func (p ofRedigo) getAre(ctx context.Context, keys []string, values [][]byte) (bool, error) {
	send := func(conn redis.Conn, at int) error { return conn.Send("GET", keys[at]) }
	replies, err := p.all(ctx, len(keys), send)
	are := true
	for at, reply := range replies {
		found, _ := redis.Bytes(reply, nil)
		are = are && bytes.Equal(found, values[at])
	}
	return are, err
}

// The value of a call that is given up after a time.
func incrFor(p peer, key string, limit time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.incr(ctx, key)
}
