package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

const namespace = "karmada-system"

var testTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newTestInstaller returns an installer for a fake host. forbidden are the resources that the user may
// not write.
func newTestInstaller(t *testing.T, values rendering.Values, forbidden []string, existing ...client.Object) (*Installer, *[]string) {
	t.Helper()
	installation := rendering.Installation{Release: "karmada", Namespace: namespace, Version: "v1", Values: rendering.Merge(rendering.LocalImage(), values)}
	settings, err := readSettings(installation)
	if err != nil {
		t.Fatal(err)
	}
	reported := &[]string{}
	reportf := func(format string, args ...any) { *reported = append(*reported, fmt.Sprintf(format, args...)) }
	host := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(existing...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = !slices.Contains(forbidden, review.Spec.ResourceAttributes.Resource)
				return nil
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	i := &Installer{
		Options: Options{Installation: installation, Progressf: reportf, Step: func(_ string, run func() error) error { return run() }},
		host:    host, now: func() time.Time { return testTime }, settings: settings,
	}
	i.applier = Applier{API: host, Installer: InstallationManager, Cluster: HostName, Progressf: reportf}
	return i, reported
}

func TestPreflight(t *testing.T) {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 32443}}}}
	withPort := rendering.Values{"apiServer": rendering.Values{"serviceType": "NodePort", "nodePort": 32443}}
	withClass := func(class string) rendering.Values {
		return rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"storageType": "pvc", "pvc": rendering.Values{"storageClass": class}}}}
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
	defaultClass := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{defaultClassAnnotation: "true"}}}
	withMembers := func(count int) rendering.Values {
		return rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"replicaCount": count}}}
	}
	etcdOf := func(members string) client.Object {
		installed := &appsv1.StatefulSet{ObjectMeta: meta("etcd", nil)}
		installed.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd", Command: []string{"etcd", "--initial-cluster=" + members, "--initial-cluster-state=new"}}}
		return installed
	}
	stored := func(version string) client.Object {
		return NewSecret(namespace, "karmada-installation", map[string][]byte{versionKey: []byte(version), releaseKey: []byte("karmada")})
	}
	tests := map[string]struct {
		values    rendering.Values
		forbidden []string
		existing  []client.Object
		want      string
	}{
		"an empty host":                                {},
		"an installation of this version":              {existing: []client.Object{stored("v1")}},
		"an installation of another version":           {existing: []client.Object{stored("v0")}, want: "has version v0, and this program has version v1"},
		"a control plane of Helm":                      {existing: []client.Object{&appsv1.Deployment{ObjectMeta: meta("karmada-apiserver", map[string]string{"app.kubernetes.io/managed-by": "Helm"})}}, want: "another tool installed it (labels: app.kubernetes.io/managed-by=Helm)"},
		"a control plane of another release":           {existing: []client.Object{&appsv1.Deployment{ObjectMeta: meta("karmada-apiserver", map[string]string{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingApp})}}, want: "nothing is changed"},
		"an API server of the operator":                {existing: []client.Object{&appsv1.StatefulSet{ObjectMeta: meta("karmada-apiserver", nil)}}, want: "none of a known tool"},
		"an installation that was interrupted":         {existing: []client.Object{&appsv1.Deployment{ObjectMeta: meta("karmada-apiserver", map[string]string{clusterv1alpha1.InstalledByLabel: InstallationManager})}}},
		"permissions that are missing":                 {forbidden: []string{"secrets", "roles"}, want: "you lack permissions in namespace karmada-system of the host cluster: get secrets, create secrets, patch secrets, get roles.rbac.authorization.k8s.io"},
		"a node port that another Service has":         {values: withPort, existing: []client.Object{other}, want: "node port 32443 of the host cluster is used by Service web/shop: choose another port with --port"},
		"the node port of an earlier run":              {values: withPort, existing: []client.Object{&corev1.Service{ObjectMeta: meta("karmada-apiserver", nil), Spec: other.Spec}}},
		"a StorageClass that does not exist":           {values: withClass("fast"), existing: []client.Object{class}, want: "StorageClass fast does not exist in the host cluster: choose another with --storage-classes-name (existing: slow)"},
		"a StorageClass that exists":                   {values: withClass("slow"), existing: []client.Object{class}},
		"no default StorageClass":                      {values: withClass(""), existing: []client.Object{class}, want: "has no default StorageClass"},
		"the default StorageClass":                     {values: withClass(""), existing: []client.Object{class, defaultClass}},
		"the number of etcd members of an earlier run": {values: withMembers(3), existing: []client.Object{etcdOf("a=1,b=2,c=3")}},
		"more members than the installed etcd":         {values: withMembers(3), existing: []client.Object{etcdOf("a=1")}, want: "has 1 members, not 3: new members could form an empty cluster beside the one with your data; keep --etcd-replicas=1"},
		"fewer members than the installed etcd":        {existing: []client.Object{etcdOf("a=1,b=2,c=3")}, want: "has 3 members, not 1"},
		"another StatefulSet with the name etcd":       {existing: []client.Object{&appsv1.StatefulSet{ObjectMeta: meta("etcd", nil)}}},
		"no registry of the image":                     {values: rendering.Values{"componentDefaults": rendering.Values{"image": rendering.Values{"registry": "", "repository": "karmada/karmada"}}}, want: "build the image, mirror it to a registry"},
		"a value that the chart rejects":               {values: rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"storageType": "pvc", "pvc": rendering.Values{"size": "1Gi"}}}}, existing: []client.Object{defaultClass}, want: "(karmadactl init: --etcd-pvc-size)"},
		"several problems are reported together":       {values: withPort, forbidden: []string{"secrets"}, existing: []client.Object{other}, want: "\nnode port"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			i, _ := newTestInstaller(t, test.values, test.forbidden, test.existing...)
			err := i.preflight(t.Context())
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestPreviewReportsInvalidValueOnce(t *testing.T) {
	i, _ := newTestInstaller(t, rendering.Values{"etcd": rendering.Values{"internal": rendering.Values{"extraArgs": []any{"--v=1", "--v=2"}}}}, nil)
	if _, err := i.Preview(t.Context()); err == nil || strings.Count(err.Error(), "contains --v twice") != 1 {
		t.Errorf("error %v", err)
	}
}

// TestPodsRestartWithTheirFiles requires that a new file changes exactly the workloads that mount it.
func TestPodsRestartWithTheirFiles(t *testing.T) {
	i, _ := newTestInstaller(t, nil, nil)
	if err := i.ensureCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := configHashes(t, i)
	renewed, _, err := certificates.Renew(i.files, i.settings.spec, []string{certificates.EtcdServer}, testTime.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	i.files = renewed
	if err := i.renderHost(); err != nil {
		t.Fatal(err)
	}
	var changed []string
	for name, hash := range configHashes(t, i) {
		if hash == "" {
			t.Errorf("%s has no hash", name)
		}
		if hash != before[name] {
			changed = append(changed, name)
		}
	}
	if diff := cmp.Diff([]string{"StatefulSet etcd"}, changed); diff != "" {
		t.Errorf("changed workloads (-want +got):\n%s", diff)
	}
}

func configHashes(t *testing.T, i *Installer) map[string]string {
	t.Helper()
	hashes := map[string]string{}
	for _, workload := range slices.Concat(i.objects.servers, i.objects.components) {
		hash, err := readConfigHash(workload)
		if err != nil {
			t.Fatal(err)
		}
		hashes[workload.GetObjectKind().GroupVersionKind().Kind+" "+workload.GetName()] = hash
	}
	return hashes
}

func TestEtcdIsFirst(t *testing.T) {
	i, _ := newTestInstaller(t, nil, nil)
	if err := i.ensureCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, server := range i.objects.servers {
		names = append(names, server.GetName())
	}
	if diff := cmp.Diff([]string{"etcd", "karmada-apiserver"}, names); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// TestSecretsKeepCertificates requires that certificates survive in the host's Secrets.
func TestSecretsKeepCertificates(t *testing.T) {
	i, _ := newTestInstaller(t, nil, nil)
	if err := i.RenewCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := maps.Clone(i.files)
	i.changes, i.written = nil, 0
	if err := i.RenewCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, i.files); diff != "" || len(i.changes) > 0 || i.written > 0 {
		t.Errorf("a second run issued %v, wrote %d objects, and changed (-first +second):\n%s", i.changes, i.written, diff)
	}
	other := maps.Clone(first)
	delete(other, "karmada.crt")
	if err := i.WriteCertificates(t.Context(), other, first); err == nil || !strings.Contains(err.Error(), "have changed in the meantime") {
		t.Errorf("a concurrent change: %v", err)
	}
}

func TestWorkloadsRestartOnlyWithNewFiles(t *testing.T) {
	workload := func(annotations map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karmada-scheduler"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}},
		}
	}
	hash := func(value string) map[string]string {
		return map[string]string{clusterv1alpha1.ConfigHashAnnotation: value}
	}
	tests := map[string]struct {
		existing  []client.Object
		isChanged bool
		want      int
	}{
		"other files":                          {existing: []client.Object{workload(hash("old"))}, want: 1},
		"the same files":                       {existing: []client.Object{workload(hash("new"))}, isChanged: true},
		"a workload of Helm with its files":    {existing: []client.Object{workload(nil)}},
		"a workload of Helm with new files":    {existing: []client.Object{workload(nil)}, isChanged: true, want: 1},
		"a workload that is not installed yet": {isChanged: true},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			i, reported := newTestInstaller(t, nil, nil, test.existing...)
			if err := i.restart(t.Context(), workload(hash("new")), test.isChanged); err != nil {
				t.Fatal(err)
			}
			if i.written != test.want || len(*reported) != test.want {
				t.Errorf("%d restarts, want %d: %v", i.written, test.want, *reported)
			}
		})
	}
}

// TestObsoleteObjectsAreDeleted reduces the replicas, so that a PodDisruptionBudget is obsolete.
func TestObsoleteObjectsAreDeleted(t *testing.T) {
	i, _ := newTestInstaller(t, rendering.Values{"scheduler": rendering.Values{"replicaCount": 2}}, nil)
	run := func() {
		t.Helper()
		i.written = 0
		if err := errors.Join(i.preflight(t.Context()), i.ensureCertificates(t.Context()), i.ensureNamespace(t.Context())); err != nil {
			t.Fatal(err)
		}
		all, _ := i.inventory()
		if err := errors.Join(i.store(t.Context(), all, !i.isFirst()), i.apply(t.Context(), i.objects.all()...), i.deleteObsolete(t.Context()), i.complete(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	run()
	budget := referencedObject(corev1.ObjectReference{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: namespace, Name: "karmada-scheduler"})
	if err := i.host.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
		t.Fatal(err)
	}
	run()
	if i.written != 0 {
		t.Errorf("%d objects are written again", i.written)
	}
	i.Values = rendering.LocalImage()
	run()
	if err := i.host.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the obsolete object exists: %v", err)
	}
	stored, err := readStored(t.Context(), i.host, namespace, "karmada")
	if err != nil || slices.Contains(stored.Inventory, referenceTo(budget)) || !stored.IsCompleted {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

func TestNodesOfTheHost(t *testing.T) {
	node := func(name, address string, edit func(*corev1.Node)) corev1.Node {
		n := corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
		if edit != nil {
			edit(&n)
		}
		return n
	}
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "dedicated"}} }
	labeled := func(label string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels[label] = "" } }
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = append([]corev1.NodeCondition{{Type: kind, Status: status}}, n.Status.Conditions...)
		}
	}
	notReady := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	tests := map[string]struct {
		nodes     []corev1.Node
		addresses []string
		etcd      string
		isLabeled bool
	}{
		"a control-plane node has the address": {
			[]corev1.Node{node("a", "10.0.0.1", nil), node("b", "10.0.0.2", labeled("node-role.kubernetes.io/control-plane"))}, []string{"10.0.0.2"}, "a", false,
		},
		"an old label of control-plane nodes": {
			[]corev1.Node{node("a", "10.0.0.1", labeled("node-role.kubernetes.io/control-plane")), node("b", "10.0.0.2", labeled("node-role.kubernetes.io/master"))}, []string{"10.0.0.2"}, "a", false,
		},
		"the first three nodes": {
			[]corev1.Node{node("a", "10.0.0.1", tainted), node("b", "10.0.0.2", nil), node("c", "10.0.0.3", nil), node("d", "10.0.0.4", nil)}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, "b", false,
		},
		"a node that was chosen before": {
			[]corev1.Node{node("a", "10.0.0.1", nil), node("b", "10.0.0.2", labeled(clusterv1alpha1.EtcdNodeLabel))}, []string{"10.0.0.1", "10.0.0.2"}, "b", true,
		},
		"nodes with problems are skipped": {
			[]corev1.Node{node("a", "1", notReady), node("b", "2", condition(corev1.NodeDiskPressure, corev1.ConditionTrue)), node("c", "3", condition(corev1.NodeMemoryPressure, corev1.ConditionFalse))}, []string{"1", "2", "3"}, "c", false,
		},
		"no suitable node": {[]corev1.Node{node("a", "1", tainted)}, []string{"1"}, "", false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			h := &Host{nodes: test.nodes}
			addresses, err := h.Addresses()
			if diff := cmp.Diff(test.addresses, addresses); diff != "" || err != nil {
				t.Errorf("addresses %v (-want +got):\n%s", err, diff)
			}
			name, isLabeled, err := h.EtcdNode()
			if name != test.etcd || isLabeled != test.isLabeled || (err == nil) != (test.etcd != "") {
				t.Errorf("node %q labeled %t: %v", name, isLabeled, err)
			}
		})
	}
	unreachable := &Host{nodes: []corev1.Node{node("a", "1", func(n *corev1.Node) { n.Status.Addresses = nil })}}
	if _, err := unreachable.Addresses(); err == nil || !strings.Contains(err.Error(), "--karmada-apiserver-advertise-address") {
		t.Errorf("nodes without addresses: %v", err)
	}
}

func TestPreviewWritesNothing(t *testing.T) {
	i, reported := newTestInstaller(t, nil, nil)
	written, err := i.Preview(t.Context())
	if err != nil || written == 0 || len(*reported) < written {
		t.Errorf("%d objects, %v: %v", written, err, *reported)
	}
	deployments := &appsv1.DeploymentList{}
	if err := i.host.List(t.Context(), deployments); err != nil || len(deployments.Items) > 0 {
		t.Errorf("%d Deployments are created: %v", len(deployments.Items), err)
	}
}

func TestRenderedSecretsHaveNoData(t *testing.T) {
	i, _ := newTestInstaller(t, nil, nil)
	objects, err := i.Render(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, object := range objects {
		content, ok := object.(*unstructured.Unstructured)
		if !ok || content.GetKind() != "Secret" {
			continue
		}
		secrets++
		for key, value := range content.Object["data"].(map[string]any) {
			if value != "" {
				t.Errorf("Secret %s has data of %s", content.GetName(), key)
			}
		}
	}
	if secrets == 0 {
		t.Error("no Secret is rendered")
	}
}
