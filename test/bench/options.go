package main

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"
)

// options are the flags.
type options struct {
	karmadaKubeconfig string
	karmadaContext    string
	membersKubeconfig string
	memberContexts    []string

	processes     map[string]int
	processesFile string
	children      bool
	// programMetrics maps each program's name to the URL of its metrics.
	programMetrics map[string]string

	run            []string
	singles        int
	templates      int
	replicas       int32
	concurrency    int
	timeout        time.Duration
	settle         time.Duration
	restartCommand string
	frozenMember   string
	idleMembers    int
	quiet          time.Duration
	json           string
	budget         string

	schedulerCommand string
	schedulerMetrics string
	clusterObjects   int
	bindings         int

	search searchOptions

	// compareBase and compareCurrent are report files. If they are set, the program only compares them.
	compareBase, compareCurrent []string
	// recordBudget are report files. If they are set, the program only records their results in the file budget.
	recordBudget []string
}

func defaultOptions() options {
	return options{
		karmadaContext: "karmada-apiserver",
		run:            []string{"latency", "burst", "update", "delete"},
		singles:        50,
		templates:      200,
		replicas:       1,
		concurrency:    32,
		timeout:        5 * time.Minute,
		settle:         10 * time.Second,
		idleMembers:    50,
		quiet:          time.Minute,
		clusterObjects: 50,
		bindings:       5000,
		search:         defaultSearchOptions(),
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.karmadaKubeconfig, "karmada-kubeconfig", o.karmadaKubeconfig, "kubeconfig of the control plane")
	flags.StringVar(&o.karmadaContext, "karmada-context", o.karmadaContext, "context in the kubeconfig of the control plane")
	flags.StringVar(&o.membersKubeconfig, "members-kubeconfig", o.membersKubeconfig, "kubeconfig of the members")
	flags.StringSliceVar(&o.memberContexts, "member-contexts", o.memberContexts,
		"contexts in the kubeconfig of the members, each with the name of its Cluster")
	flags.StringToIntVar(&o.processes, "process", o.processes, "name=pid of a process whose CPU time and memory are measured; repeatable")
	flags.StringVar(&o.processesFile, "processes-file", o.processesFile,
		`JSON file with the processes, [{"name":"karmada","pid":1}]; it is read again after a restart`)
	flags.BoolVar(&o.children, "process-children", o.children, "include the descendants of these processes")
	flags.StringToStringVar(&o.programMetrics, "program-metrics", o.programMetrics,
		"name=URL of a program's metrics, from which its CPU time, memory and heap allocations are read; repeatable")
	flags.StringSliceVar(&o.run, "run", o.run,
		"scenarios to run: direct, latency, burst, update, restart, frozen, delete, idle, schedule, search")
	flags.IntVar(&o.singles, "singles", o.singles,
		"number of templates of the latency scenario, and of Deployments that direct creates one at a time")
	flags.IntVar(&o.templates, "templates", o.templates, "number of templates of the other scenarios")
	flags.Int32Var(&o.replicas, "replicas", o.replicas, "replicas of a template in each member")
	flags.IntVar(&o.concurrency, "concurrency", o.concurrency, "maximum number of concurrent requests of this program")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "timeout of a scenario")
	flags.DurationVar(&o.settle, "settle", o.settle, "delay before writes are counted, for late writes")
	flags.StringVar(&o.restartCommand, "restart-command", o.restartCommand,
		"shell command that restarts the control plane and returns when the API server is ready")
	flags.StringVar(&o.frozenMember, "frozen-member", o.frozenMember,
		"context of an additional member, whose process the frozen scenario suspends")
	flags.IntVar(&o.idleMembers, "idle-members", o.idleMembers, "number of members of the idle scenario")
	flags.DurationVar(&o.quiet, "quiet", o.quiet, "duration of the measurement of the idle scenario")
	flags.StringVar(&o.schedulerCommand, "scheduler-command", o.schedulerCommand,
		"command of the scheduler that the schedule scenario starts; no other scheduler may run")
	flags.StringVar(&o.schedulerMetrics, "scheduler-metrics", o.schedulerMetrics, "URL of the metrics of that scheduler")
	flags.IntVar(&o.clusterObjects, "cluster-objects", o.clusterObjects, "number of Clusters of the schedule scenario")
	flags.IntVar(&o.bindings, "bindings", o.bindings, "number of bindings of the schedule scenario")
	o.search.addFlags(flags)
	flags.StringSliceVar(&o.compareBase, "compare-base", o.compareBase,
		"files written with --json by runs of an earlier build; prints a comparison with --compare-current and measures nothing")
	flags.StringSliceVar(&o.compareCurrent, "compare-current", o.compareCurrent, "files written with --json by runs of the current build")
	flags.StringVar(&o.budget, "budget", o.budget, "JSON file with recorded results and margins; larger results are an error")
	flags.StringSliceVar(&o.recordBudget, "record-budget", o.recordBudget,
		"files written with --json, whose largest results are recorded in the file of --budget; measures nothing")
	flags.StringVar(&o.json, "json", o.json, "file to write the results to, as JSON")
}

// validate checks the flags. needsMembers is true if a scenario propagates templates.
func (o *options) validate(needsMembers bool) error {
	switch {
	case o.karmadaKubeconfig == "":
		return errors.New("--karmada-kubeconfig is needed")
	case needsMembers && (o.membersKubeconfig == "" || len(o.memberContexts) == 0):
		return errors.New("--members-kubeconfig and --member-contexts are needed")
	case o.singles < 1 || o.templates < 1 || o.replicas < 1 || o.concurrency < 1 || o.idleMembers < 1 || o.quiet <= 0 ||
		o.clusterObjects < 1 || o.bindings < 1:
		return errors.New("--singles, --templates, --replicas, --concurrency, --idle-members, --quiet, --cluster-objects and --bindings must be positive")
	case len(o.processes) > 0 && o.processesFile != "":
		return errors.New("--process and --processes-file exclude each other")
	case o.restartCommand == "" && slices.Contains(o.run, "restart"):
		return errors.New("the restart scenario needs --restart-command")
	case o.frozenMember == "" && slices.Contains(o.run, "frozen"):
		return errors.New("the frozen scenario needs --frozen-member")
	case (o.schedulerCommand == "" || o.schedulerMetrics == "") && slices.Contains(o.run, "schedule"):
		return errors.New("the schedule scenario needs --scheduler-command and --scheduler-metrics")
	case slices.Contains(o.run, searchScenario):
		return o.search.validate()
	}
	return nil
}
