package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/install"
)

const (
	demoMembers      = 3
	demoTimeout      = 4 * time.Minute
	demoPollInterval = 100 * time.Millisecond
	demoName         = "nginx"
	demoNamespace    = metav1.NamespaceDefault
)

// demo performs a new user's first steps and prints the results.
type demo struct {
	options  Options
	examples string
	out, err io.Writer
	karmada  *rest.Config
	members  map[string]*rest.Config
}

func demoCommand() *cobra.Command {
	d := &demo{options: defaultOptions()}
	d.options.Members = demoMembers
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start Karmada with three member clusters and run an application in two of them",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := d.options.complete(isNoFlag); err != nil {
				return err
			}
			d.out, d.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, cancel := withStopSignals(cmd.Context())
			defer cancel()
			return d.run(ctx)
		},
	}
	cmd.Flags().StringVar(&d.options.DataDir, "data-dir", d.options.DataDir, "Directory of all data of the installation")
	cmd.Flags().StringVar(&d.examples, "examples", "examples/nginx", "Directory of the manifests to apply")
	return cmd
}

func (d *demo) run(ctx context.Context) error {
	manifests, err := readManifests(d.examples)
	if err != nil {
		return err
	}
	if err := d.ensureUp(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	if err := d.connect(); err != nil {
		return err
	}
	fmt.Fprintf(d.err, "\nApplying %s\n", d.examples)
	if _, err := install.Apply(ctx, d.karmada, manifests...); err != nil {
		return err
	}
	if err := d.awaitDeployment(ctx); err != nil {
		return err
	}
	return d.printResult(ctx)
}

// ensureUp starts the installation unless it is already running.
func (d *demo) ensureUp(ctx context.Context) error {
	dir := dataDir{d.options.DataDir}
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return err
	}
	if pid == 0 {
		return runDetached(ctx, d.options, d.err)
	}
	fmt.Fprintf(d.err, "Karmada is already running (process %d, %s).\n", pid, dir.path)
	return nil
}

func (d *demo) connect() error {
	dir := dataDir{d.options.DataDir}
	var err error
	if d.karmada, err = clientcmd.BuildConfigFromFlags("", dir.karmadaKubeconfig()); err != nil {
		return fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	config, err := clientcmd.LoadFromFile(dir.membersKubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the members: %w", err)
	}
	d.members = map[string]*rest.Config{}
	for name := range config.Contexts {
		member, err := clientcmd.NewNonInteractiveClientConfig(*config, name, nil, nil).ClientConfig()
		if err != nil {
			return fmt.Errorf("reading context %q: %w", name, err)
		}
		d.members[name] = member
	}
	return nil
}

func readManifests(dir string) ([]client.Object, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing the manifests in %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no manifests in %s: run this command in the top directory of the project, or set --examples", dir)
	}
	var objects []client.Object
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading manifest: %w", err)
		}
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
		for {
			object := &unstructured.Unstructured{}
			if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			if len(object.Object) == 0 {
				continue
			}
			if object.GetNamespace() == "" && object.GetKind() != "Namespace" {
				object.SetNamespace(demoNamespace)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// awaitDeployment waits until both target clusters run the application and the status in the control
// plane shows the sum of their replicas.
func (d *demo) awaitDeployment(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(d.karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	var ready int32
	err = wait.PollUntilContextCancel(ctx, demoPollInterval, true, func(ctx context.Context) (bool, error) {
		deployment, err := client.AppsV1().Deployments(demoNamespace).Get(ctx, demoName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ready = deployment.Status.ReadyReplicas
		return isDeployed(deployment), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for Deployment %s to run in its clusters (%d ready): %w", demoName, ready, err)
	}
	return nil
}

// isDeployed reports whether both target clusters have observed the current generation and all replicas
// are ready.
func isDeployed(deployment *appsv1.Deployment) bool {
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation && status.Replicas == 2 &&
		status.ReadyReplicas == 2 && status.UpdatedReplicas == 2
}

func (d *demo) printResult(ctx context.Context) error {
	if err := d.printTable(ctx, "kubectl get clusters", d.karmada, "/apis/"+clusterv1alpha1.GroupVersion.String()+"/clusters"); err != nil {
		return err
	}
	deployments := "/apis/apps/v1/namespaces/" + demoNamespace + "/deployments"
	if err := d.printTable(ctx, "kubectl get deployments", d.karmada, deployments); err != nil {
		return err
	}
	names := make([]string, 0, len(d.members))
	for name := range d.members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := d.printTable(ctx, "kubectl --context "+name+" get deployments", d.members[name], deployments); err != nil {
			return err
		}
	}
	if err := d.printImages(ctx, names); err != nil {
		return err
	}
	dir := dataDir{d.options.DataDir}
	fmt.Fprintf(d.err, `
More commands:
  export KUBECONFIG=%s:%s
  kubectl get rb,work -A
  kubectl describe rb nginx-deployment
  kubectl --context member1 get pods
Stop:
  %s
`, console.ShellWord(dir.karmadaKubeconfig()), console.ShellWord(dir.membersKubeconfig()), dir.stopCommand())
	return nil
}

func (d *demo) printImages(ctx context.Context, names []string) error {
	fmt.Fprintf(d.out, "\n$ images by cluster\n")
	for _, name := range names {
		client, err := kubernetes.NewForConfig(d.members[name])
		if err != nil {
			return fmt.Errorf("creating a client of %q: %w", name, err)
		}
		list, err := client.AppsV1().Deployments(demoNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing Deployments of %q: %w", name, err)
		}
		var images []string
		for _, deployment := range list.Items {
			for _, container := range deployment.Spec.Template.Spec.Containers {
				images = append(images, container.Image)
			}
		}
		if len(images) == 0 {
			images = []string{"-"}
		}
		fmt.Fprintf(d.out, "%s: %s\n", name, strings.Join(images, ", "))
	}
	return nil
}
