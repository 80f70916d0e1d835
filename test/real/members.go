package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"karmada.io/karmada/internal/install"
)

// pulled is the name under which the host registers in pull mode.
const pulled = "pulled"

// checkAddons installs the estimator of the member and the descheduler.
func (j *journey) checkAddons(ctx context.Context) error {
	_, err := j.atHost(ctx, "addons", "enable", install.DeschedulerProgram, install.EstimatorProgram, "--karmada-kubeconfig",
		j.karmadaConfig(),
		"-C", member, "--member-kubeconfig", j.kubeconfig("admin"))
	if err != nil {
		return err
	}
	return j.checkContainers(ctx)
}

// checkPullMode registers the host in pull mode instead of push mode. One control plane cannot have the same
// cluster twice.
func (j *journey) checkPullMode(ctx context.Context) error {
	if _, err := j.karmadactl(ctx, "unjoin", member, "--kubeconfig", j.karmadaConfig(), "--cluster-kubeconfig",
		j.kubeconfig("admin")); err != nil {
		return err
	}
	command, err := j.karmadactl(ctx, "token", "create", "--print-register-command", "--kubeconfig", j.karmadaConfig())
	if err != nil {
		return err
	}
	// The command is: karmadactl register ADDRESS --token TOKEN --discovery-token-ca-cert-hash HASH
	fields := strings.Fields(command)
	if len(fields) < 3 || fields[1] != "register" {
		return fmt.Errorf("the command of the token is %q", command)
	}
	args := append(slices.Clone(fields[1:]), "--kubeconfig", j.kubeconfig("admin"), "--cluster-name", pulled, "--namespace", pulled)
	if _, err := j.karmadactl(ctx, args...); err != nil {
		return err
	}
	if err := j.awaitMember(ctx, pulled); err != nil {
		return err
	}
	return j.checkDelivery(ctx, pulled)
}
