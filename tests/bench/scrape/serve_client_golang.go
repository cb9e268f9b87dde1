// SPDX-License-Identifier: Apache-2.0
// Serves the series of a file with client_golang. Each line of it: type, name, value, then label names and values, with
// tabs between them.
//
//	serve_client_golang FILE PORT
package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	registry := prometheus.NewRegistry()
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<20)
	for scanner.Scan() {
		words := strings.Split(scanner.Text(), "\t")
		labels := prometheus.Labels{}
		for i := 3; i+1 < len(words); i += 2 {
			labels[words[i]] = words[i+1]
		}
		value, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			panic(err)
		}
		if words[0] == "counter" {
			counter := prometheus.NewCounter(prometheus.CounterOpts{Name: words[1], Help: "A counter.", ConstLabels: labels})
			registry.MustRegister(counter)
			counter.Add(value)
		} else {
			gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: words[1], Help: "A gauge.", ConstLabels: labels})
			registry.MustRegister(gauge)
			gauge.Set(value)
		}
	}
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	go func() {
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(time.Second)
		}
		os.Exit(0)
	}()
	fmt.Println("127.0.0.1:" + os.Args[2])
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[2], nil))
}
