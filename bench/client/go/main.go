// One client in one scenario, as the Rust program beside it: the same command line, scenarios and line of JSON.
//
// Every value that is read is checked.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

type options struct {
	peer, scenario, address string
	seconds                 float64
	tasks, valueBytes       int
	rate                    float64
	seed                    uint64
	workers                 int
	batch                   int
	beginMs                 int64
	pauseMs                 int64
}

func (o options) time() time.Duration {
	return time.Duration(o.seconds * float64(time.Second))
}

type report map[string]float64

func main() {
	var o options
	list := flag.Bool("list", false, "print the names of all clients")
	flag.StringVar(&o.peer, "peer", "rueidis", "client")
	flag.StringVar(&o.scenario, "scenario", "closed", "scenario")
	flag.StringVar(&o.address, "address", "127.0.0.1:6379", "server")
	flag.Float64Var(&o.seconds, "seconds", 2, "how long it is measured")
	flag.IntVar(&o.tasks, "tasks", 128, "callers")
	flag.IntVar(&o.valueBytes, "value-bytes", 64, "bytes of a value")
	flag.Float64Var(&o.rate, "rate", 10000, "requests a second of the open loop")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.IntVar(&o.workers, "workers", 0, "processors of the scheduler; 0 is one")
	flag.IntVar(&o.batch, "batch", 10, "requests of a batch")
	flag.Int64Var(&o.beginMs, "begin-ms", 0, "when the load on a cluster begins, in milliseconds of the system's clock")
	flag.Int64Var(&o.pauseMs, "pause-ms", 5, "how long a caller of a cluster waits between two pairs of requests")
	flag.Parse()
	if *list {
		for _, name := range peers {
			fmt.Println(name)
		}
		return
	}
	runtime.GOMAXPROCS(max(o.workers, 1))
	found := run(connect(o), o)
	line, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	os.Exit(0)
}
