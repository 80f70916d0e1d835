package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/install"
)

// initTimeout limits one step with a control plane in a member.
const initTimeout = 4 * time.Minute

// hostedPlane is a control plane that karmadactl init installs in a simulated member.
type hostedPlane struct {
	namespace, dir string
	port           int
	host           client.Client
	// plane has the client of the control plane.
	plane *installation
}

func newHostedPlane(t *testing.T) *hostedPlane {
	t.Helper()
	h := &hostedPlane{namespace: fmt.Sprintf("init-%d", rand.IntN(1e6)), dir: t.TempDir(), port: 30000 + rand.IntN(2700), host: shared.members[spareMember]}
	h.plane = &installation{dir: h.dir}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), initTimeout)
		defer cancel()
		_ = h.karmadactl(ctx, "deinit", "--force", "--purge-namespace")
	})
	return h
}

// karmadactl runs a command for the host cluster.
func (h *hostedPlane) karmadactl(ctx context.Context, args ...string) commandResult {
	return runProgram(ctx, nil, "karmadactl", append(args, "--kubeconfig", shared.membersConfig(), "--context", spareMember, "-n", h.namespace)...)
}

func (h *hostedPlane) init(ctx context.Context, args ...string) commandResult {
	return h.karmadactl(ctx, append([]string{"init", "--private-image-registry", "localhost/karmada", "--port", strconv.Itoa(h.port), "--karmada-data", h.dir, "--karmada-pki", filepath.Join(h.dir, "pki"), "--etcd-data", "/var/lib/" + h.namespace}, args...)...)
}

// hostObjects returns the versions of the objects of the control plane in the host, by kind and name.
func (h *hostedPlane) hostObjects(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Pod"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := h.host.List(t.Context(), list, client.InNamespace(h.namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if name := list.Items[i].GetName(); name != "default" { // the service account of the namespace
				versions[kind.Kind+" "+name] = list.Items[i].GetResourceVersion()
			}
		}
	}
	return versions
}

// TestInitInstallsAControlPlane is the life of a control plane in a member as a user sees it.
func TestInitInstallsAControlPlane(t *testing.T) {
	t.Parallel()
	h := newHostedPlane(t)
	h.init(t.Context()).mustSucceed(t)
	h.checkSecondRun(t)
	h.checkChange(t)
	if err := h.plane.connectClients(); err != nil {
		t.Fatal(err)
	}
	h.joinMember(t)
	h.checkDelivery(t, "first")
	h.checkCertificates(t)
	h.checkAddons(t)
	h.deleteEachPod(t)
	h.checkDelivery(t, "second")
	h.checkRemoval(t)
}

// checkSecondRun requires that a second run writes nothing.
func (h *hostedPlane) checkSecondRun(t *testing.T) {
	t.Helper()
	before := h.hostObjects(t)
	second := h.init(t.Context())
	second.mustSucceed(t)
	if !strings.Contains(second.stdout, "nothing had to be changed") {
		t.Errorf("the second run printed:\n%s%s", second.stdout, second.stderr)
	}
	for object, version := range h.hostObjects(t) {
		// The status of workloads and Pods may change at any time.
		if kind, _, _ := strings.Cut(object, " "); version != before[object] && !slices.Contains([]string{"Deployment", "StatefulSet", "Pod"}, kind) {
			t.Errorf("%s is written by the second run", object)
		}
	}
	preview := h.init(t.Context(), "--dry-run", "--karmada-scheduler-replicas=2")
	preview.mustSucceed(t)
	for _, want := range []string{"Deployment " + h.namespace + "/karmada-scheduler would be changed", "PodDisruptionBudget " + h.namespace + "/karmada-scheduler would be created"} {
		if !strings.Contains(preview.stderr, want) {
			t.Errorf("the preview has no line %q:\n%s", want, preview.stderr)
		}
	}
}

// checkChange changes the replicas of a component, and changes them back.
func (h *hostedPlane) checkChange(t *testing.T) {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "karmada-scheduler"}}
	h.init(t.Context(), "--karmada-scheduler-replicas=2").mustSucceed(t)
	if err := h.host.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
		t.Errorf("two replicas have no budget: %v", err)
	}
	h.init(t.Context()).mustSucceed(t)
	if err := checkAbsent(t.Context(), h.host, budget); err != nil {
		t.Errorf("the budget of one replica: %v", err)
	}
}

// joinMember joins a member under a name of its own, beside the control plane of the other tests.
func (h *hostedPlane) joinMember(t *testing.T) {
	t.Helper()
	result := h.plane.karmadactl(t.Context(), "join", h.namespace, "--cluster-namespace", h.namespace, "--cluster-kubeconfig", shared.membersConfig(), "--cluster-context", member2)
	result.mustSucceed(t)
	eventually(t, "the member is Ready", func(ctx context.Context) error { return h.plane.awaitClustersReady(ctx, h.namespace) })
}

// checkDelivery delivers a ConfigMap to the member.
func (h *hostedPlane) checkDelivery(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
	policy := selectAll(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Name: name}).propagationPolicy(h.namespace, h.namespace)
	policy.Name = name
	for _, object := range []client.Object{namespace, newConfigMap(h.namespace, name, "v"), policy} {
		eventuallyWithin(t, initTimeout, "creating "+object.GetName(), func(ctx context.Context) error {
			if err := h.plane.karmada.Create(ctx, object); err != nil && !isExisting(ctx, h.plane.karmada, object) {
				return err
			}
			return nil
		})
	}
	eventuallyWithin(t, initTimeout, "the ConfigMap is in the member", func(ctx context.Context) error {
		return shared.members[member2].Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, &corev1.ConfigMap{})
	})
}

func isExisting(ctx context.Context, cluster client.Client, object client.Object) bool {
	existing := object.DeepCopyObject().(client.Object)
	return cluster.Get(ctx, client.ObjectKeyFromObject(object), existing) == nil
}

// checkCertificates renews a certificate, which restarts the components that use it.
func (h *hostedPlane) checkCertificates(t *testing.T) {
	t.Helper()
	h.karmadactl(t.Context(), "certs", "check").mustSucceed(t)
	before := h.secret(t, clusterv1alpha1.CertificateSecret)
	h.karmadactl(t.Context(), "certs", "renew", "karmada").mustSucceed(t)
	after := h.secret(t, clusterv1alpha1.CertificateSecret)
	if string(before.Data["karmada.crt"]) == string(after.Data["karmada.crt"]) || string(before.Data["karmada.key"]) != string(after.Data["karmada.key"]) {
		t.Error("the renewal must issue another certificate for the same key")
	}
	kept := h.init(t.Context())
	kept.mustSucceed(t)
	if !strings.Contains(kept.stdout, "nothing had to be changed") {
		t.Errorf("a run after the renewal printed:\n%s%s", kept.stdout, kept.stderr)
	}
}

func (h *hostedPlane) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := h.host.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// checkAddons installs three addons, uses the search of members, and removes the addons.
func (h *hostedPlane) checkAddons(t *testing.T) {
	t.Helper()
	addons := func(args ...string) commandResult {
		// The commands find the control plane in the host.
		return h.karmadactl(t.Context(), append([]string{"addons"}, args...)...)
	}
	enabled := addons("enable", install.DeschedulerProgram, install.EstimatorProgram, install.SearchProgram, "-C", h.namespace, "--member-kubeconfig", shared.membersConfig(), "--member-context", member2)
	enabled.mustSucceed(t)
	listed := addons("list", "-C", h.namespace)
	listed.mustSucceed(t)
	for _, name := range []string{install.DeschedulerProgram, install.EstimatorProgram, install.SearchProgram} {
		if !containsAll(lineWith(listed.stdout, name), []string{"enabled"}) {
			t.Errorf("%s is not enabled:\n%s", name, listed.stdout)
		}
	}
	again := addons("enable", install.SearchProgram)
	again.mustSucceed(t)
	checkOutput(t, again, "addon karmada-search unchanged\n")
	h.checkSearch(t)
	addons("disable", "--force", install.DeschedulerProgram, install.EstimatorProgram, install.SearchProgram, "-C", h.namespace).mustSucceed(t)
	listed = addons("list")
	if !containsAll(lineWith(listed.stdout, install.SearchProgram), []string{"disabled"}) {
		t.Errorf("%s is not disabled:\n%s", install.SearchProgram, listed.stdout)
	}
}

// checkSearch caches the ConfigMaps of the member. It asks for the status and not for the objects,
// because the control plane of the other tests decides whom the member impersonates.
func (h *hostedPlane) checkSearch(t *testing.T) {
	t.Helper()
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	registry.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	if err := h.plane.karmada.Create(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the search has the ConfigMaps of the member", func(ctx context.Context) error {
		if err := h.plane.karmada.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		for _, cluster := range registry.Status.Clusters {
			for _, kind := range cluster.Kinds {
				if cluster.Name == h.namespace && kind.Objects > 0 {
					return nil
				}
			}
		}
		return fmt.Errorf("the status is %+v", registry.Status)
	})
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// deleteEachPod deletes the Pods of one workload after the other, and waits until each workload is
// available again.
func (h *hostedPlane) deleteEachPod(t *testing.T) {
	t.Helper()
	pods, err := install.ListPods(t.Context(), h.host, h.namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if err := h.host.Delete(t.Context(), &pods[i]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	deployments := &appsv1.DeploymentList{}
	if err := h.host.List(t.Context(), deployments, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		if err := install.AwaitReady(t.Context(), h.host, &deployments.Items[i], initTimeout); err != nil {
			t.Error(err)
		}
	}
}

// checkRemoval removes the control plane, and requires that the host has no trace and that the member
// keeps its workload.
func (h *hostedPlane) checkRemoval(t *testing.T) {
	t.Helper()
	before := h.hostObjects(t)
	preview := h.karmadactl(t.Context(), "deinit", "--dry-run")
	preview.mustSucceed(t)
	if !strings.Contains(preview.stdout, `delete deployment "karmada-apiserver"`) || len(h.hostObjects(t)) != len(before) {
		t.Errorf("the dry run printed:\n%s", preview.stdout)
	}
	if !strings.Contains(preview.stderr, "would refuse") {
		t.Errorf("the dry run does not mention the joined cluster:\n%s", preview.stderr)
	}
	h.karmadactl(t.Context(), "deinit").mustFail(t, 1, "(push)", "karmadactl unjoin "+h.namespace+" --cluster-kubeconfig=MEMBER_KUBECONFIG", "--force")
	removal := h.karmadactl(t.Context(), "deinit", "--force")
	removal.mustSucceed(t)
	eventually(t, "nothing remains in the host", func(context.Context) error {
		if remaining := h.hostObjects(t); len(remaining) > 0 {
			return fmt.Errorf("%v remain", remaining)
		}
		return nil
	})
	if strings.Contains(removal.stdout, "keeps label") {
		t.Log("etcd of another test in the same host uses the node's label")
	} else {
		eventually(t, "no node has the etcd label", func(ctx context.Context) error { // another test may set it meanwhile
			nodes := &corev1.NodeList{}
			if err := h.host.List(ctx, nodes, client.HasLabels{clusterv1alpha1.EtcdNodeLabel}); err != nil || len(nodes.Items) == 0 {
				return err
			}
			return fmt.Errorf("%d nodes have the label %s, the removal printed:\n%s", len(nodes.Items), clusterv1alpha1.EtcdNodeLabel, removal.stdout)
		})
	}
	if err := shared.members[member2].Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "first"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("the member lost its object: %v", err)
	}
	h.karmadactl(t.Context(), "deinit", "--force", "--purge-namespace").mustSucceed(t)
}

// TestInitRefuses runs init in situations in which it must not start.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	foreign := func(t *testing.T, h *hostedPlane) []string {
		deployment := newDeployment(h.namespace, "karmada-apiserver", 0)
		deployment.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		createIn(t, h.host, deployment)
		return nil
	}
	takenPort := func(t *testing.T, h *hostedPlane) []string {
		createIn(t, h.host, &corev1.Service{ObjectMeta: objectMeta(h.namespace, "taken"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: int32(h.port)}},
		}})
		return nil
	}
	with := func(args ...string) func(*testing.T, *hostedPlane) []string {
		return func(*testing.T, *hostedPlane) []string { return args }
	}
	archive := filepath.Join(t.TempDir(), "crds.tar.gz")
	if err := os.WriteFile(archive, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		prepare func(*testing.T, *hostedPlane) []string
		want    string
	}{
		"another tool installed a control plane": {foreign, "another tool installed it (labels: app.kubernetes.io/managed-by=Helm)"},
		"the node port is taken":                 {takenPort, "is used by Service"},
		"the StorageClass does not exist":        {with("--etcd-storage-mode=PVC", "--storage-classes-name=fast"), "StorageClass fast does not exist in the host cluster"},
		"the archive of CRDs is none":            {with("--crds", archive), "archive of CRDs " + archive + ": it is not compressed by gzip"},
		"a component does not start":             {with("--etcd-extra-args=--no-such-flag", "--wait-component-ready-timeout=5"), "(Pod etcd-0, exit code 2; the whole log: kubectl "},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			h := newHostedPlane(t)
			if err := h.host.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}); err != nil {
				t.Fatal(err)
			}
			h.init(t.Context(), test.prepare(t, h)...).mustFail(t, 1, test.want)
		})
	}
}
