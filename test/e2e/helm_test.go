package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	helmRelease   = "karmada"
	addonsRelease = "addons"
	agentRelease  = "agent"
)

type helmValues = map[string]any

// helmPlane is a control plane that the chart installs in a simulated member.
type helmPlane struct {
	hostedPlane
	chart  *chart.Chart
	config *action.Configuration
}

func newHelmPlane(t *testing.T) *helmPlane {
	t.Helper()
	h := &helmPlane{hostedPlane: hostedPlane{
		namespace: fmt.Sprintf("helm-%d", rand.IntN(1e6)), dir: t.TempDir(), port: 30000 + rand.IntN(2700), host: shared.members[spareMember],
	}}
	h.plane = &installation{dir: h.dir}
	h.chart = packageChart(t)
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context, flags.Namespace = new(shared.membersConfig()), new(spareMember), &h.namespace
	h.config = action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := h.config.Init(flags, h.namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, release := range []string{agentRelease, addonsRelease, helmRelease} {
			_ = h.uninstall(release)
		}
		_ = h.host.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})
	})
	return h
}

// packageChart packages the chart as a release does, and returns the chart of the archive.
func packageChart(t *testing.T) *chart.Chart {
	t.Helper()
	source, err := loader.LoadDir(filepath.Join(repositoryRoot, "charts", "karmada"))
	if err != nil {
		t.Fatal(err)
	}
	source.Metadata.AppVersion = "v0.0.1"
	archive, err := chartutil.Save(source, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := loader.LoadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return packaged
}

func (h *helmPlane) install(t *testing.T, release string, values helmValues) {
	t.Helper()
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, h.namespace, true
	install.WaitStrategy, install.WaitForJobs, install.Timeout = kube.StatusWatcherStrategy, true, initTimeout
	if _, err := install.RunWithContext(t.Context(), h.chart, values); err != nil {
		t.Fatalf("installing release %s: %v", release, err)
	}
}

func (h *helmPlane) upgrade(t *testing.T, values helmValues) {
	t.Helper()
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.ServerSideApply = h.namespace, "auto"
	upgrade.WaitStrategy, upgrade.WaitForJobs, upgrade.Timeout = kube.StatusWatcherStrategy, true, initTimeout
	if _, err := upgrade.RunWithContext(t.Context(), helmRelease, h.chart, values); err != nil {
		t.Fatal("upgrading the release:", err)
	}
}

func (h *helmPlane) uninstall(release string) error {
	uninstall := action.NewUninstall(h.config)
	uninstall.IgnoreNotFound, uninstall.WaitStrategy, uninstall.Timeout = true, kube.StatusWatcherStrategy, initTimeout
	_, err := uninstall.Run(release)
	return err
}

// values returns the values of the release of the control plane, with more values for one test.
func (h *helmPlane) values(more helmValues) helmValues {
	values := helmValues{
		"global":    helmValues{"imageRegistry": "localhost"},
		"apiServer": helmValues{"serviceType": "NodePort", "nodePort": int64(h.port), "externalURL": fmt.Sprintf("https://127.0.0.1:%d", h.port)},
		"etcd":      helmValues{"internal": helmValues{"hostPath": "/var/lib/" + h.namespace}},
	}
	maps.Copy(values, more)
	return values
}

// TestHelmInstallsAControlPlane is the life of a release of the chart.
func TestHelmInstallsAControlPlane(t *testing.T) {
	t.Parallel()
	h := newHelmPlane(t)
	h.install(t, helmRelease, h.values(nil))
	h.writeKubeconfig(t)
	if err := h.plane.connectClients(); err != nil {
		t.Fatal(err)
	}
	h.joinMember(t)
	h.checkDelivery(t, "first")
	h.checkUpgrades(t)
	h.checkComponents(t)
	h.checkAgent(t)
	h.checkBuiltInServers(t)
	h.checkUninstall(t)
}

// kubeconfig returns the kubeconfig of the control plane for clients in the host.
func (h *helmPlane) kubeconfig(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.Load(h.secret(t, "karmada-kubeconfig").Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// writeKubeconfig writes the kubeconfig of the control plane, with the node port as its server.
func (h *helmPlane) writeKubeconfig(t *testing.T) {
	t.Helper()
	config := h.kubeconfig(t)
	config.Clusters["karmada-apiserver"].Server = fmt.Sprintf("https://127.0.0.1:%d", h.port)
	if err := clientcmd.WriteToFile(*config, h.plane.karmadaConfig()); err != nil {
		t.Fatal(err)
	}
}

// states returns the objects of the releases in the host by kind and name. A state changes only when
// a client writes the desired state of its object. The state of a Pod changes when it is replaced.
func (h *helmPlane) states(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Pod"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := h.host.List(t.Context(), list, client.InNamespace(h.namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.GetDeletionTimestamp() != nil {
				continue // a Pod that ends: its controller has removed it
			}
			state := object.GetResourceVersion()
			switch {
			case kind.Kind == "Pod":
				state = string(object.GetUID())
			case object.GetGeneration() > 0:
				state = fmt.Sprint(object.GetGeneration())
			}
			if name := object.GetName(); name != "default" && !strings.HasPrefix(name, "sh.helm.release") {
				states[kind.Kind+" "+name] = state
			}
		}
	}
	return states
}

// differences returns the objects whose states differ, without the random parts of the names of Pods.
func differences(before, after map[string]string) []string {
	var changed []string
	for object := range merged(before, after) {
		if before[object] == after[object] {
			continue
		}
		if kind, name, _ := strings.Cut(object, " "); kind == "Pod" {
			parts := strings.Split(name, "-")
			object = kind + " " + strings.Join(parts[:max(1, len(parts)-2)], "-")
		}
		changed = append(changed, object)
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// checkUpgrades requires that an upgrade writes only what differs.
func (h *helmPlane) checkUpgrades(t *testing.T) {
	t.Helper()
	before := h.states(t)
	h.upgrade(t, h.values(nil))
	if changed := differences(before, h.states(t)); len(changed) > 0 {
		t.Errorf("an upgrade with the same values changes %q", changed)
	}
	h.upgrade(t, h.values(helmValues{"scheduler": helmValues{"replicaCount": int64(2)}}))
	want := []string{"Deployment karmada-scheduler", "Pod karmada-scheduler", "PodDisruptionBudget karmada-scheduler", "Secret karmada-installation"}
	if changed := differences(before, h.states(t)); !slices.Equal(changed, want) {
		t.Errorf("an upgrade with a second scheduler changes %q, want %q", changed, want)
	}
}

// checkComponents installs a descheduler and an estimator as another release.
func (h *helmPlane) checkComponents(t *testing.T) {
	t.Helper()
	member, err := clientcmd.LoadFromFile(shared.membersConfig())
	if err != nil {
		t.Fatal(err)
	}
	member.CurrentContext = member2
	if err := clientcmdapi.MinifyConfig(member); err != nil {
		t.Fatal(err)
	}
	if err := clientcmdapi.FlattenConfig(member); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.Write(*member)
	if err != nil {
		t.Fatal(err)
	}
	before := h.states(t)
	h.install(t, addonsRelease, helmValues{
		"global":      helmValues{"imageRegistry": "localhost"},
		"installMode": "component", "components": []any{"descheduler", "schedulerEstimator"},
		"schedulerEstimator": helmValues{"memberClusters": []any{helmValues{"clusterName": h.namespace, "kubeconfig": string(kubeconfig)}}},
	})
	if err := h.uninstall(addonsRelease); err != nil {
		t.Error(err)
	}
	eventually(t, "the components are gone", func(context.Context) error {
		if changed := differences(before, h.states(t)); len(changed) > 0 {
			return fmt.Errorf("%q remain or are changed", changed)
		}
		return nil
	})
}

// checkAgent registers the host as a member in pull mode.
func (h *helmPlane) checkAgent(t *testing.T) {
	t.Helper()
	name, config := h.namespace+"-pull", h.kubeconfig(t)
	// The agent creates its credentials for the control plane in a namespace of its own.
	t.Cleanup(func() {
		_ = h.host.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	cluster, user := config.Clusters["karmada-apiserver"], config.AuthInfos["karmada-admin"]
	h.install(t, agentRelease, helmValues{"installMode": "agent", "global": helmValues{"imageRegistry": "localhost"}, "agent": helmValues{
		"clusterName": name, "clusterEndpoint": "https://" + name, "extraArgs": []any{"--cluster-namespace=" + name},
		"kubeconfig": helmValues{
			"server": cluster.Server, "caCrt": string(cluster.CertificateAuthorityData), "crt": string(user.ClientCertificateData), "key": string(user.ClientKeyData),
		},
	}})
	eventually(t, "the member in pull mode is Ready", func(ctx context.Context) error { return h.plane.awaitClustersReady(ctx, name) })
	registered := &clusterv1alpha1.Cluster{}
	if err := h.plane.karmada.Get(t.Context(), client.ObjectKey{Name: name}, registered); err != nil || registered.Spec.SyncMode != clusterv1alpha1.Pull {
		t.Errorf("the member has mode %q: %v", registered.Spec.SyncMode, err)
	}
	if err := h.plane.karmada.Delete(t.Context(), registered); err != nil {
		t.Error(err)
	}
	eventually(t, "the agent has left", func(ctx context.Context) error {
		err := h.plane.karmada.Get(ctx, client.ObjectKey{Name: name}, registered)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("cluster %s still exists (%w)", name, errors.Join(err))
		}
		return nil
	})
	if err := h.uninstall(agentRelease); err != nil {
		t.Error(err)
	}
}

// checkBuiltInServers runs the webhook and the aggregated API server in the process of the API server.
func (h *helmPlane) checkBuiltInServers(t *testing.T) {
	t.Helper()
	values := h.values(nil)
	values["apiServer"].(helmValues)["program"] = "karmada-apiserver"
	h.upgrade(t, values)
	for _, absent := range []string{"Deployment karmada-webhook", "Deployment karmada-aggregated-apiserver", "Service karmada-webhook"} {
		if _, ok := h.states(t)[absent]; ok {
			t.Errorf("%s still exists", absent)
		}
	}
	eventually(t, "the member is Ready", func(ctx context.Context) error { return h.plane.awaitClustersReady(ctx, h.namespace) })
	h.checkDelivery(t, "second")
}

// checkUninstall requires that nothing remains in the host except the data of etcd.
func (h *helmPlane) checkUninstall(t *testing.T) {
	t.Helper()
	if err := h.uninstall(helmRelease); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing remains in the host", func(context.Context) error {
		if remaining := h.states(t); len(remaining) > 0 {
			return fmt.Errorf("%v remain", slices.Sorted(maps.Keys(remaining)))
		}
		return nil
	})
	var data []string
	err := filepath.WalkDir(shared.dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, h.namespace+"/member/snap/db") {
			data = append(data, path)
		}
		return nil
	})
	if err != nil || len(data) != 1 {
		t.Errorf("the data of etcd is in %q: %v", data, err)
	}
	if err := shared.members[member2].Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "first"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("the member lost its object: %v", err)
	}
}
