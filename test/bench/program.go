package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// program is a program that a scenario started.
type program struct {
	// name is the name in errors, such as "the scheduler".
	name    string
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// startProgram starts a shell command.
func startProgram(name, shellCommand string) (*program, error) {
	// The shell replaces itself, so the process ID is that of the program.
	command := exec.Command("/bin/sh", "-c", "exec "+shellCommand)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &program{name: name, command: command, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // the scenario reports an early end
	}()
	return p, nil
}

func (p *program) usage() (usage, error) {
	used, err := processReader{proc: os.DirFS("/proc")}.usage(p.command.Process.Pid)
	if err != nil {
		return usage{}, fmt.Errorf("measuring %s: %w", p.name, err)
	}
	return used, nil
}

var errEnded = errors.New("the program has ended")

// errEnded returns the error for a program that ended too early.
func (p *program) errEnded() error { return fmt.Errorf("%s: %w", p.name, errEnded) }

// stop stops the program and waits for its end.
func (p *program) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // an error means that the process has ended
	<-p.ended
}

// readMetrics reads a program's metrics with the given names. Each value is the sum of the metric's time series. The returned
// map lacks the metrics that the program does not have.
func readMetrics(ctx context.Context, client *http.Client, address string, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	// A compressed response would add about 1 MB to the allocations of the program.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w", response.Status, errUnexpectedResponse)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("parsing the metrics: %w", err)
	}
	values := map[string]float64{}
	for _, name := range names {
		for _, metric := range families[name].GetMetric() {
			values[name] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values, nil
}

var errUnexpectedResponse = errors.New("unexpected response")
