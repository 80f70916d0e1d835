package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// step is one part of the run.
type step struct {
	name string
	run  func(context.Context) error
}

// report prints the progress of the run, and collects its measurements.
type report struct {
	started time.Time
	out     io.Writer
	rows    []row
}

type row struct{ name, value string }

func (r *report) add(name, format string, args ...any) {
	r.rows = append(r.rows, row{name, fmt.Sprintf(format, args...)})
}

// runSteps runs steps one after the other, and prints the time of each.
func (r *report) runSteps(ctx context.Context, steps []step) error {
	for _, step := range steps {
		began := time.Now()
		err := step.run(ctx)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED"
		}
		fmt.Fprintf(r.out, "%4ds  %-6s %s (%.1fs)\n", int(time.Since(r.started).Seconds()), verdict, step.name, time.Since(began).Seconds())
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// print prints the measurements.
func (r *report) print() error {
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, row := range r.rows {
		fmt.Fprintf(table, "%s\t%s\n", row.name, row.value)
	}
	return table.Flush()
}

const megabyte = 1e6
