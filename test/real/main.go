// Command real tests an installation with real containers. It starts a Kubernetes cluster
// whose only node is this machine, installs a control plane with karmadactl, uses it, and removes it.
//
// test/real/run builds all programs, and runs this command in new namespaces. The end of the namespaces
// ends all processes and removes all files and networks of the node, so this command removes nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// totalTimeout limits the whole run. It takes about two minutes on two processors.
const totalTimeout = 15 * time.Minute

func main() {
	// Errors are returned. Warnings of API servers are not for the user of this test.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the parsed flags.
type options struct {
	// programs has karmada and karmadactl. Its folder real has the other programs.
	programs, image, cni, logs string
}

func parse(args []string) (options, error) {
	o := options{}
	flags := pflag.NewFlagSet("real", pflag.ContinueOnError)
	flags.StringVar(&o.programs, "programs", "bin", "directory of the built programs")
	flags.StringVar(&o.image, "image", "", "OCI archive of the image of Karmada")
	flags.StringVar(&o.cni, "cni", "/usr/lib/cni", "directory of the plugins of CNI")
	flags.StringVar(&o.logs, "logs", "", "directory for the logs of the servers and Pods")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.image == "" || o.logs == "" {
		return o, errors.New("--image and --logs are required: run test/real/run, which sets them")
	}
	var err error
	o.programs, err = filepath.Abs(o.programs)
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	r := &report{started: time.Now(), out: os.Stdout}
	n := newNode(o)
	err = n.runJourney(ctx, r)
	ended := n.servers.failure()
	n.servers.stop()
	if err := errors.Join(err, ended, copyLogs(n.keptLogs(), filepath.Join(n.logs, "pods"))); err != nil {
		return fmt.Errorf("%w\nthe logs of the servers and Pods are in %s", err, n.logs)
	}
	return r.print()
}

func (n *node) runJourney(ctx context.Context, r *report) error {
	if err := n.start(ctx, r); err != nil {
		return err
	}
	j, err := newJourney(n, r)
	if err != nil {
		return err
	}
	return j.run(ctx)
}
