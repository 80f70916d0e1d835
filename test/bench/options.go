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
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.karmadaKubeconfig, "karmada-kubeconfig", o.karmadaKubeconfig, "kubeconfig of the control plane")
	flags.StringVar(&o.karmadaContext, "karmada-context", o.karmadaContext, "context in the kubeconfig of the control plane")
	flags.StringVar(&o.membersKubeconfig, "members-kubeconfig", o.membersKubeconfig, "kubeconfig of the members")
	flags.StringSliceVar(&o.memberContexts, "member-contexts", o.memberContexts, "contexts in the kubeconfig of the members, each with the name of its Cluster")
	flags.StringToIntVar(&o.processes, "process", o.processes, "name=pid of a process whose CPU time and memory are measured; repeatable")
	flags.StringVar(&o.processesFile, "processes-file", o.processesFile, `JSON file with the processes, [{"name":"karmada","pid":1}]; it is read again after a restart`)
	flags.BoolVar(&o.children, "process-children", o.children, "include the descendants of these processes")
	flags.StringSliceVar(&o.run, "run", o.run, "scenarios to run: latency, burst, update, restart, frozen, delete, idle")
	flags.IntVar(&o.singles, "singles", o.singles, "number of templates of the latency scenario")
	flags.IntVar(&o.templates, "templates", o.templates, "number of templates of the other scenarios")
	flags.Int32Var(&o.replicas, "replicas", o.replicas, "replicas of a template in each member")
	flags.IntVar(&o.concurrency, "concurrency", o.concurrency, "maximum number of concurrent requests of this program")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "timeout of a scenario")
	flags.DurationVar(&o.settle, "settle", o.settle, "delay before writes are counted, for late writes")
	flags.StringVar(&o.restartCommand, "restart-command", o.restartCommand, "shell command that restarts the control plane and returns when the API server is ready")
	flags.StringVar(&o.frozenMember, "frozen-member", o.frozenMember, "context of an additional member, whose process the frozen scenario suspends")
	flags.IntVar(&o.idleMembers, "idle-members", o.idleMembers, "number of members of the idle scenario")
	flags.DurationVar(&o.quiet, "quiet", o.quiet, "duration of the measurement of the idle scenario")
	flags.StringVar(&o.json, "json", o.json, "file to write the results to, as JSON")
}

func (o *options) validate() error {
	switch {
	case o.karmadaKubeconfig == "":
		return errors.New("--karmada-kubeconfig is needed")
	case o.membersKubeconfig == "" || len(o.memberContexts) == 0:
		return errors.New("--members-kubeconfig and --member-contexts are needed")
	case o.singles < 1 || o.templates < 1 || o.replicas < 1 || o.concurrency < 1 || o.idleMembers < 1 || o.quiet <= 0:
		return errors.New("--singles, --templates, --replicas, --concurrency, --idle-members and --quiet must be positive")
	case len(o.processes) > 0 && o.processesFile != "":
		return errors.New("--process and --processes-file exclude each other")
	case o.restartCommand == "" && slices.Contains(o.run, "restart"):
		return errors.New("the restart scenario needs --restart-command")
	case o.frozenMember == "" && slices.Contains(o.run, "frozen"):
		return errors.New("the frozen scenario needs --frozen-member")
	}
	return nil
}
