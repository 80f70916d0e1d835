package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	// startTimeout limits the start of an installation.
	startTimeout = 6 * time.Minute
	// stopTimeout limits the stop of an installation.
	stopTimeout = time.Minute
)

// installation is one data directory of karmada, with clients for its API servers.
type installation struct {
	dir     string
	karmada client.Client
	members map[string]client.Client
}

func (i *installation) karmadaConfig() string {
	return filepath.Join(i.dir, "karmada-apiserver.config")
}
func (i *installation) membersConfig() string { return filepath.Join(i.dir, "members.config") }

// up starts the installation in the background and creates its clients.
func (i *installation) up(ctx context.Context, args ...string) error {
	args = append([]string{"up", "--data-dir", i.dir, "--detach"}, args...)
	if result := runProgram(ctx, nil, "karmada", args...); result.code != 0 {
		return fmt.Errorf("karmada up ended with %d:\n%s%s", result.code, result.stderr, i.logTails())
	}
	return i.connectClients()
}

// remove stops the installation and deletes its data.
func (i *installation) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if result := runProgram(ctx, nil, "karmada", "down", "--purge", "--data-dir", i.dir); result.code != 0 {
		fmt.Fprintln(os.Stderr, result.stderr)
	}
}

func (i *installation) karmadactl(ctx context.Context, args ...string) commandResult {
	return runProgram(ctx, []string{"KUBECONFIG=" + i.karmadaConfig()}, "karmadactl", args...)
}

// connectClients creates a client for each context of the kubeconfigs.
func (i *installation) connectClients() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, searchv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if i.karmada, err = newClient(scheme, i.karmadaConfig(), "karmada-apiserver"); err != nil {
		return err
	}
	i.members = map[string]client.Client{}
	config, err := clientcmd.LoadFromFile(i.membersConfig())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the installation has no members
	}
	if err != nil {
		return err
	}
	for name := range config.Contexts {
		if i.members[name], err = newClient(scheme, i.membersConfig(), name); err != nil {
			return err
		}
	}
	return nil
}

func newClient(scheme *runtime.Scheme, path, context string) (client.Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	config.QPS = -1
	return client.New(config, client.Options{Scheme: scheme})
}

// awaitClustersReady waits until the clusters are Ready.
func (i *installation) awaitClustersReady(ctx context.Context, names ...string) error {
	return poll(ctx, func(ctx context.Context) error {
		for _, name := range names {
			cluster := &clusterv1alpha1.Cluster{}
			if err := i.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
				return fmt.Errorf("cluster %s is not Ready: %v", name, cluster.Status.Conditions)
			}
		}
		return nil
	})
}

// controlPlane is the name of the control plane process in processes.json.
const controlPlane = "karmada"

// processID returns the ID of the process of the control plane or of a member.
func (i *installation) processID(name string) (int, error) {
	data, err := os.ReadFile(filepath.Join(i.dir, "processes.json"))
	if err != nil {
		return 0, err
	}
	var processes []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(data, &processes); err != nil {
		return 0, err
	}
	for _, process := range processes {
		if process.Name == name {
			return process.PID, nil
		}
	}
	return 0, fmt.Errorf("no process %s among %v", name, processes)
}

// processCommandLines returns the command lines of all running processes that were started
// for the data directory. A zombie process has no command line.
func (i *installation) processCommandLines() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // the process has exited
		}
		if words := strings.Split(string(line), "\x00"); strings.Contains(string(line), i.dir) {
			found = append(found, strings.Join(words, " "))
		}
	}
	return found, nil
}

// logTails returns the last lines of every log file.
func (i *installation) logTails() string {
	files, err := filepath.Glob(filepath.Join(i.dir, "logs", "*.log"))
	if err != nil {
		return err.Error()
	}
	const last = 20
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		fmt.Fprintf(&text, "%s:\n%s\n", file, strings.Join(lines[max(0, len(lines)-last):], "\n"))
	}
	return text.String()
}
