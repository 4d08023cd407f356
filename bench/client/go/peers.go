package main

import (
	"bytes"
	"context"
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
}

func connect(o options) peer {
	switch o.peer {
	case "rueidis":
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.address}, DisableCache: true})
		must(err)
		return ofRueidis{client}
	case "go-redis":
		return ofGoRedis{goredis.NewClient(&goredis.Options{Addr: o.address})}
	case "go-redis-pipeline":
		client, err := goredis.NewClient(&goredis.Options{Addr: o.address}).
			AutoPipelineWithOptions(&goredis.AutoPipelineOptions{FullDuplex: true})
		must(err)
		return ofGoRedis{client}
	case "radix":
		client, err := radix.PoolConfig{}.New(context.Background(), "tcp", o.address)
		must(err)
		return ofRadix{client}
	case "redigo":
		dial := func() (redis.Conn, error) { return redis.Dial("tcp", o.address) }
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

type ofRadix struct{ client radix.Client }

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

// The value of a call that is given up after a time.
func incrFor(p peer, key string, limit time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.incr(ctx, key)
}
