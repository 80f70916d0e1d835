// Command bench measures the latency, the throughput and the cost of a Karmada control plane's
// propagation.
//
// It treats the control plane as a black box: it needs only kubeconfigs and process IDs. It
// creates Deployments as a user does, and watches them in the members. It can measure each
// implementation of Karmada's API and compare versions. A time is measured when the watch
// of this program delivers the change, so it includes one network hop.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
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
	if len(o.compareBase) > 0 || len(o.compareCurrent) > 0 {
		if len(o.compareBase) == 0 || len(o.compareCurrent) == 0 {
			return errors.New("--compare-base and --compare-current need each other")
		}
		return compareReports(os.Stdout, o.compareBase, o.compareCurrent)
	}
	if len(o.recordBudget) > 0 {
		if o.budget == "" {
			return errors.New("--record-budget needs --budget, the file to which it writes")
		}
		return recordBudget(o.budget, o.recordBudget)
	}
	chosen, err := chooseScenarios(o.run)
	if err != nil {
		return err
	}
	if err := o.validate(needMembers(chosen)); err != nil {
		return err
	}
	f, err := connect(o)
	if err != nil {
		return err
	}
	b := &bench{options: o, fleet: f, report: newReport(o)}
	if err := errors.Join(b.measure(ctx, chosen), b.report.save(os.Stdout, o.json)); err != nil || o.budget == "" {
		return err
	}
	return verifyBudget(o.budget, b.report)
}

// bench is one run of the program.
type bench struct {
	options options
	fleet   *fleet
	report  *report
}

// scenario is one measurement.
type scenario struct {
	name string
	help string
	run  func(*bench, context.Context) error
	// needsNoMembers is set for scenarios in which nothing is propagated.
	needsNoMembers bool
}

// scenarios lists the scenarios in the order in which they run. update, restart and delete
// use the templates of burst, and create those that do not exist.
var scenarios = []scenario{
	{name: directScenario, help: "the same Deployments written to the members without Karmada: the limit for latency and burst",
		run: (*bench).direct},
	{name: "latency", help: "templates one at a time: the time until they are ready in all members and show it in their status",
		run: (*bench).latency},
	{name: "burst", help: "many templates at once: the rate and the cost", run: (*bench).burst},
	{name: "update", help: "a new image for all templates", run: (*bench).update},
	{name: "restart", help: "a restart of the control plane: the time until it propagates again, and its writes", run: (*bench).restart},
	{name: "frozen", help: "templates while an additional member accepts connections and never responds", run: (*bench).frozen},
	{name: "delete", help: "the deletion of all templates", run: (*bench).remove},
	{name: "idle", help: "many additional members without changes, in the memory of this program", run: (*bench).idle},
	{name: "schedule", help: "many bindings that wait when the scheduler starts: the rate and the cost", run: (*bench).schedule,
		needsNoMembers: true},
	{name: "search", help: "karmada-search with many Pods of additional members, in the memory of this program: time, memory and CPU",
		run: (*bench).search, needsNoMembers: true},
}

func chooseScenarios(names []string) ([]scenario, error) {
	unseen := map[string]bool{}
	for _, name := range names {
		unseen[name] = true
	}
	var chosen []scenario
	for _, s := range scenarios {
		if unseen[s.name] {
			chosen = append(chosen, s)
			delete(unseen, s.name)
		}
	}
	for name := range unseen {
		return nil, fmt.Errorf("unknown scenario %q in --run", name)
	}
	return chosen, nil
}

// needMembers reports whether at least one of the scenarios propagates templates to members.
func needMembers(chosen []scenario) bool {
	return slices.ContainsFunc(chosen, func(s scenario) bool { return !s.needsNoMembers })
}

// measure runs the chosen scenarios. It always deletes the created objects, also after an
// error.
func (b *bench) measure(ctx context.Context, chosen []scenario) (err error) {
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		err = errors.Join(err, b.fleet.cleanUp(cleanup))
	}()
	if needMembers(chosen) {
		if err := b.runWithTimeout(ctx, "preparing", b.prepare); err != nil {
			return err
		}
	}
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, s.help)
		if err := b.runWithTimeout(ctx, s.name, func(ctx context.Context) error { return s.run(b, ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) runWithTimeout(ctx context.Context, description string, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	if err := act(ctx); err != nil {
		return fmt.Errorf("%s: %w", description, err)
	}
	return nil
}

// prepare creates the namespace and the policy, and waits until a first template is
// propagated, so that no scenario includes the setup of connections and caches.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.fleet.createNamespaceAndPolicy(ctx); err != nil {
		return err
	}
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		return b.propagate(ctx, o, []string{"warm-up"})
	})
}
