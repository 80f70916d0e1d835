// Command bench answers: how fast does a Karmada control plane propagate, and
// what does that cost?
//
// It is a black box: it knows kubeconfigs and process ids, creates Deployments
// as a user would, and watches them arrive. Whatever implements Karmada's API can
// be measured, and two versions compared. Times are those at which the watches of
// this program deliver, so that they include one hop of the network.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o := defaultOptions()
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	chosen, err := chooseScenarios(o.run)
	if err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	f, err := connect(o)
	if err != nil {
		return err
	}
	b := &bench{options: o, fleet: f, report: newReport(o)}
	return errors.Join(b.measure(ctx, chosen), b.report.save(os.Stdout, o.json))
}

// bench is one run of the program.
type bench struct {
	options options
	fleet   *fleet
	report  *report
}

// scenario is one thing to measure.
type scenario struct {
	name string
	help string
	run  func(*bench, context.Context) error
}

// scenarios are run in this order: update and delete find the templates that
// burst made, or make their own.
var scenarios = []scenario{
	{"latency", "templates one at a time: how long until they run everywhere and say so", (*bench).latency},
	{"burst", "many templates at once: how many a second, at which cost", (*bench).burst},
	{"update", "a new image for all of them", (*bench).update},
	{"restart", "the control plane restarts: how soon it works again, and what it writes meanwhile", (*bench).restart},
	{"frozen", "templates while one more member accepts connections and never answers", (*bench).frozen},
	{"delete", "all of them deleted", (*bench).remove},
	{"idle", "many more members, in the memory of this program, in which nothing happens", (*bench).idle},
}

func chooseScenarios(names []string) ([]scenario, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var chosen []scenario
	for _, s := range scenarios {
		if wanted[s.name] {
			chosen = append(chosen, s)
			delete(wanted, s.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("unknown scenario %q in --run", name)
	}
	return chosen, nil
}

// measure runs the chosen scenarios and removes what they left, whatever happens.
func (b *bench) measure(ctx context.Context, chosen []scenario) (err error) {
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		err = errors.Join(err, b.fleet.cleanUp(cleanup))
	}()
	if err := b.runWithTimeout(ctx, "preparing", b.prepare); err != nil {
		return err
	}
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, s.help)
		if err := b.runWithTimeout(ctx, s.name, func(ctx context.Context) error { return s.run(b, ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) runWithTimeout(ctx context.Context, doing string, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	if err := act(ctx); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// prepare makes the namespace and the policy, and waits until a first template
// has gone the whole way, so that no scenario pays for connections and caches.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.fleet.createNamespaceAndPolicy(ctx); err != nil {
		return err
	}
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		return b.propagate(ctx, o, []string{"warm-up"})
	})
}
