package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

const (
	namespace = clusterv1alpha1.NamespaceKarmadaSystem
	// member is the name under which the host joins its own control plane.
	member         = "real"
	commandTimeout = 5 * time.Minute
	// stepTimeout limits a wait for components or for a delivery.
	stepTimeout = 3 * time.Minute
	unchanged   = "nothing had to be changed"
)

// journey is the life of a control plane.
type journey struct {
	*node
	report *report
	// data is the directory that karmadactl init writes.
	data string
	// karmada is the client of the control plane.
	karmada client.Client
}

func newJourney(n *node, r *report) (*journey, error) {
	info, err := os.Stat(n.image)
	if err != nil {
		return nil, fmt.Errorf("measuring the image: %w", err)
	}
	r.add("image, compressed", "%.1f MB", float64(info.Size())/megabyte)
	return &journey{node: n, report: r, data: filepath.Join(n.dir, "karmada")}, nil
}

func (j *journey) run(ctx context.Context) error {
	return j.report.runSteps(ctx, []step{
		{"karmadactl init", j.install},
		{"the containers are confined", j.checkContainers},
		{"karmadactl init again writes nothing", func(ctx context.Context) error { return j.checkUnchanged(ctx, "second init") }},
		{"karmadactl join", j.join},
		{"a ConfigMap and a Deployment are delivered", func(ctx context.Context) error { return j.checkDelivery(ctx, "first") }},
		{"the Pods of each component are deleted", j.deletePods},
		{"a ConfigMap and a Deployment are delivered after that", func(ctx context.Context) error { return j.checkDelivery(ctx, "second") }},
		{"karmadactl certs renew", j.renew},
		{"the Job of the renewal issues a certificate", j.checkRenewalJob},
		{"a ConfigMap and a Deployment are delivered after the renewal",
			func(ctx context.Context) error { return j.checkDelivery(ctx, "third") }},
		{"memory", j.measureMemory},
		{"karmadactl addons", j.checkAddons},
		{"karmadactl register: an agent delivers in pull mode", j.checkPullMode},
		{"karmadactl deinit", j.remove},
	})
}

// karmadactl runs a command, and returns its standard output.
func (j *journey) karmadactl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(j.programs, "karmadactl"), args...)
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("karmadactl %s: %w\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout.String(), nil
}

// atHost runs a command for the host.
func (j *journey) atHost(ctx context.Context, args ...string) (string, error) {
	return j.karmadactl(ctx, append(args, "--kubeconfig", j.kubeconfig("admin"), "-n", namespace)...)
}

func (j *journey) init(ctx context.Context) (string, error) {
	return j.atHost(ctx, "init", "--private-image-registry=localhost/karmada", "--karmada-data", j.data, "--karmada-pki",
		filepath.Join(j.data, "pki"))
}

func (j *journey) karmadaConfig() string { return filepath.Join(j.data, "karmada-apiserver.config") }

func (j *journey) install(ctx context.Context) error {
	began := time.Now()
	if _, err := j.init(ctx); err != nil {
		return err
	}
	j.report.add("karmadactl init", "%.1f s", time.Since(began).Seconds())
	config, err := clientcmd.BuildConfigFromFlags("", j.karmadaConfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	j.karmada, err = newClient(config, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme)
	return err
}

// checkContainers checks the processes of all containers of the control plane.
func (j *journey) checkContainers(ctx context.Context) error {
	pods, err := listPods(ctx, j.host, namespace)
	if err != nil {
		return err
	}
	processes, err := readProcesses(os.DirFS("/proc"), pods)
	if err != nil {
		return err
	}
	var problems []error
	if len(processes) < len(pods) {
		problems = append(problems, fmt.Errorf("%d Pods have only %d processes", len(pods), len(processes)))
	}
	for _, process := range processes {
		problems = append(problems, process.problems())
	}
	return errors.Join(problems...)
}

// checkUnchanged runs init again, which must write nothing.
func (j *journey) checkUnchanged(ctx context.Context, name string) error {
	began := time.Now()
	output, err := j.init(ctx)
	if err != nil {
		return err
	}
	j.report.add(name, "%.1f s", time.Since(began).Seconds())
	if !strings.Contains(output, unchanged) {
		return fmt.Errorf("the output does not say %q:\n%s", unchanged, output)
	}
	return nil
}

// join joins the host, whose Pods are real.
func (j *journey) join(ctx context.Context) error {
	if _, err := j.karmadactl(ctx, "join", member, "--kubeconfig", j.karmadaConfig(), "--cluster-kubeconfig",
		j.kubeconfig("admin")); err != nil {
		return err
	}
	return j.awaitMember(ctx, member)
}

func (j *journey) awaitMember(ctx context.Context, name string) error {
	return j.servers.await(ctx, "the member is Ready", stepTimeout, func(ctx context.Context) error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := j.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return fmt.Errorf("reading the cluster: %w", err)
		}
		for _, condition := range cluster.Status.Conditions {
			if condition.Type == clusterv1alpha1.ClusterConditionReady && condition.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("the conditions of the cluster are %v", cluster.Status.Conditions)
	})
}

// measureMemory adds the memory of the processes of the control plane to the report.
func (j *journey) measureMemory(ctx context.Context) error {
	pods, err := listPods(ctx, j.host, namespace)
	if err != nil {
		return err
	}
	processes, err := readProcesses(os.DirFS("/proc"), pods)
	if err != nil {
		return err
	}
	j.report.add("restarts of containers", "%v", restarts(pods))
	var total, resident int64
	for _, p := range processes {
		total, resident = total+p.proportional, resident+p.resident
		j.report.add("memory of "+p.program, "%.0f MB (RSS %.0f MB)", float64(p.proportional)/megabyte, float64(p.resident)/megabyte)
	}
	j.report.add("memory of all components (PSS)", "%.0f MB (sum of RSS %.0f MB)", float64(total)/megabyte, float64(resident)/megabyte)
	return nil
}

// certificates returns the Secret with the certificates of the control plane.
func (j *journey) certificates(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := j.host.Get(ctx, client.ObjectKey{Namespace: namespace, Name: clusterv1alpha1.CertificateSecret}, secret); err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	return secret, nil
}
