package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/freeport"
	"karmada.io/karmada/internal/testenv"
)

// programVariable is the environment variable with the name of the program that this test
// executable runs instead of the tests.
const programVariable = "KARMADA_INTEGRATION_PROGRAM"

// programFromEnvironment returns the program that the process must run, if any.
func programFromEnvironment() (program command.Program, is bool) {
	for _, program := range components.Programs() {
		if program.Name == os.Getenv(programVariable) {
			return program, true
		}
	}
	return command.Program{}, false
}

// startProgram runs a program in its own process and returns a function that stops it.
func startProgram(t *testing.T, name string, args ...string) (stop func()) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, output := exec.Command(executable, args...), &bytes.Buffer{}
	program.Env = append(os.Environ(), programVariable+"="+name)
	program.Stdout, program.Stderr = output, output
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		err := errors.Join(program.Process.Signal(syscall.SIGTERM), program.Wait())
		if err != nil || t.Failed() {
			t.Logf("%s ended with %v and this output:\n%s", name, err, output)
		}
		if err != nil {
			t.Errorf("%s ended with an error", name)
		}
	}
	t.Cleanup(stop)
	return stop
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// plainAPIServer is an API server without built-in Karmada plugins, with the Karmada programs
// as separate processes.
type plainAPIServer struct {
	env *testenv.Env
	*standalone.Cluster
	karmada client.WithWatch
	certs   pki.Dir
	issuer  *pki.Authority
	// webhookPort and aggregatedPort are the ports of the programs.
	webhookPort, aggregatedPort int
	stopWebhook                 func()
}

func startPlainAPIServer(t *testing.T, env *testenv.Env) *plainAPIServer {
	t.Helper()
	p := &plainAPIServer{env: env, certs: pki.Dir{Path: t.TempDir()}, webhookPort: freePort(t), aggregatedPort: freePort(t)}
	var err error
	if p.issuer, err = p.certs.EnsureAuthority("ca", "programs"); err != nil {
		t.Fatal(err)
	}
	p.issueCertificate(t, "first")
	// Do not stop the API server with the context of the test, which ends before the programs stop.
	p.Cluster, err = testenv.StartCluster(context.WithoutCancel(t.Context()), standalone.Options{
		Name: "plain", CommonName: "plain", Dir: t.TempDir(), APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	if p.karmada, err = client.NewWithWatch(p.Config(), client.Options{Scheme: env.Karmada.Scheme()}); err != nil {
		t.Fatal(err)
	}
	p.stopWebhook = startProgram(t, programs.Webhook, "--kubeconfig="+p.Kubeconfig(), "--cert-dir="+p.certs.Path,
		"--bind-address="+standalone.Loopback, "--secure-port="+strconv.Itoa(p.webhookPort), "--health-probe-bind-address=0", "--metrics-bind-address=0",
		"--feature-gates=FederatedQuotaEnforcement=true")
	startProgram(t, programs.AggregatedAPIServer, append(p.EtcdFlags(), "--kubeconfig="+p.Kubeconfig(),
		"--bind-address="+standalone.Loopback, "--secure-port="+strconv.Itoa(p.aggregatedPort),
		"--tls-cert-file="+p.certs.CertFile("tls"), "--tls-private-key-file="+p.certs.KeyFile("tls"))...)
	p.registerPrograms(t)
	return p
}

// issueCertificate issues the serving certificate of the programs. With another common name, it
// issues a new certificate.
func (p *plainAPIServer) issueCertificate(t *testing.T, commonName string) {
	t.Helper()
	hosts := []string{standalone.Loopback, "localhost", aggregated.ServingName}
	if _, err := p.issuer.EnsureLeaf("tls", pki.Leaf{CommonName: commonName, Hosts: hosts}); err != nil {
		t.Fatal(err)
	}
}

// registerPrograms registers the programs with the API server.
func (p *plainAPIServer) registerPrograms(t *testing.T) {
	t.Helper()
	address := "https://" + net.JoinHostPort(standalone.Loopback, strconv.Itoa(p.webhookPort))
	conversion := install.Conversion{URL: address + admission.ConversionPath, CABundle: p.issuer.PEM()}
	if _, err := install.ApplyCRDs(t.Context(), p.Config(), nil, conversion); err != nil {
		t.Fatal(err)
	}
	installation := rendering.Installation{Release: rendering.DefaultRelease, Namespace: clusterv1alpha1.NamespaceKarmadaSystem}
	namespaces, others, err := install.ControlPlaneObjects(installation, rendering.ControlPlane{
		Server: p.Server(), CA: p.issuer.PEM(), Webhook: address,
		APIServers: map[string]rendering.Address{programs.AggregatedAPIServer: {Host: "localhost", Port: p.aggregatedPort}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The objects of one call are applied in any order, and the Service needs its namespace.
	for _, objects := range [][]client.Object{namespaces, others} {
		if _, err := install.Apply(t.Context(), p.Config(), objects...); err != nil {
			t.Fatal(err)
		}
	}
	invalidPolicy := policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Namespace = "elsewhere" })
	testenv.Eventually(t, "the API server calls the webhook", func(ctx context.Context) error {
		err := p.karmada.Create(ctx, invalidPolicy(metav1.NamespaceDefault), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("got %w", err)
	})
}

// servedCommonName returns the common name of the certificate that the program at a port
// presents.
func (p *plainAPIServer) servedCommonName(ctx context.Context, port int) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.issuer.PEM())
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(standalone.Loopback, strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestWebhookAndAggregatedAPIServerForAPlainAPIServer(t *testing.T) {
	env := shared(t)
	p := startPlainAPIServer(t, env)
	t.Run("the webhook answers like the admission plugin", p.testSameAnswerAsPlugin)
	t.Run("warnings about fields without effect", p.testWarnings)
	t.Run("conflicting customizations are rejected", p.testCustomizations)
	t.Run("bindings are converted", p.testConversion)
	t.Run("concurrent bindings never exceed a quota", p.testQuota)
	t.Run("the Cluster API is served", p.testClusterAPI)
	t.Run("a new certificate is served", p.testCertificateRotation)
	t.Run("requests that need no webhook succeed during its outage", p.testWebhookOutage)
}

func (p *plainAPIServer) createNamespace(t *testing.T, name string) {
	t.Helper()
	if err := p.karmada.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// rejectionCause returns the message of a rejection without the name of the rejecting
// component.
func rejectionCause(err error) string {
	if err == nil {
		return ""
	}
	for _, who := range []string{" is forbidden: ", " denied the request: "} {
		if _, why, found := strings.Cut(err.Error(), who); found {
			return why
		}
	}
	return err.Error()
}

func (p *plainAPIServer) testSameAnswerAsPlugin(t *testing.T) {
	namespace := p.env.Namespace(t)
	p.createNamespace(t, namespace)
	value := policyv1alpha1.JSON{Raw: []byte(`"x"`)}
	binding := func(dependencies string) func(string) client.Object {
		return func(namespace string) client.Object {
			return &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "examined", Annotations: map[string]string{workv1alpha2.DependenciesAnnotation: dependencies}},
				Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "none"}},
			}
		}
	}
	for name, c := range map[string]struct {
		object  func(namespace string) client.Object
		refused bool
	}{
		"a policy with defaults": {object: policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
			s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{}}
			s.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{}
		})},
		"a policy for another namespace": {refused: true, object: policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Namespace = "elsewhere" })},
		"a policy that the schema rejects": {refused: true, object: policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
			s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 3, MaxGroups: 2}}
		})},
		"a policy with two errors": {refused: true, object: policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
			s.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "a b"}, {AffinityName: "c d"}}
		})},
		"valid overriders": {object: overridePolicyWith(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
			FieldPath: "/data/config", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/a", Operator: policyv1alpha1.OverriderOpAdd, Value: value}},
		}}})},
		"invalid overriders":                  {refused: true, object: overridePolicyWith(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "data"}}})},
		"a binding":                           {object: binding("[]")},
		"a binding with invalid dependencies": {refused: true, object: binding("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			withPlugin, withWebhook := c.object(namespace), c.object(namespace)
			pluginErr := p.env.Karmada.Create(t.Context(), withPlugin, client.DryRunAll)
			webhookErr := p.karmada.Create(t.Context(), withWebhook, client.DryRunAll)
			if (webhookErr != nil) != c.refused {
				t.Errorf("got error %v", webhookErr)
			}
			for _, err := range []error{
				checkEqual("code", apierrors.ReasonForError(pluginErr), apierrors.ReasonForError(webhookErr)),
				checkEqual("cause", rejectionCause(pluginErr), rejectionCause(webhookErr)),
				checkEqual("defaulted object", withoutIdentity(withPlugin), withoutIdentity(withWebhook)),
			} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// withoutIdentity removes the fields that differ between two equal objects that were stored
// separately.
func withoutIdentity(object client.Object) client.Object {
	for key := range object.GetLabels() {
		if strings.HasSuffix(key, "permanent-id") {
			object.GetLabels()[key] = "some"
		}
	}
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	return object
}

func (p *plainAPIServer) testWarnings(t *testing.T) {
	listener, config := &warningCollector{}, rest.CopyConfig(p.Config())
	config.WarningHandlerWithContext = listener
	karmada, err := client.New(config, client.Options{Scheme: p.env.Karmada.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	policy := policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
		s.Association, s.Preemption = true, policyv1alpha1.PreemptAlways
	})(metav1.NamespaceDefault)
	if err := karmada.Create(t.Context(), policy, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := checkEqual("warnings", []string{
		"spec.association: has no effect; use propagateDeps",
		"spec.preemption: has no effect unless Karmada runs with the feature gate PropagationPolicyPreemption",
	}, listener.warnings); err != nil {
		t.Error(err)
	}

	listener.warnings = nil
	if err := karmada.Create(t.Context(), policyWithSpec(selectUnknownNames)(metav1.NamespaceDefault), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(unknownKindWarnings), `spec.placement.clusterAffinity.clusterNames[0]: there is no cluster "membr1" yet`)
	if err := checkEqual("warnings", want, listener.warnings); err != nil {
		t.Error(err)
	}
}

func (p *plainAPIServer) testCustomizations(t *testing.T) {
	customization := func(name string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: "Nothing"}
		c.Spec.Customizations.Retention = &configv1alpha1.LocalValueRetention{LuaScript: "function Retain(d, o) return d end"}
		return c
	}
	for clusterClient, karmada := range map[string]client.Client{"the plugin": p.env.Karmada, "the webhook": p.karmada} {
		first := customization("first")
		if err := karmada.Create(t.Context(), first); err != nil {
			t.Fatalf("%s: %v", clusterClient, err)
		}
		if err := karmada.Create(t.Context(), customization("second")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.customizations.retention") {
			t.Errorf("%s: got error %v", clusterClient, err)
		}
		if err := karmada.Delete(t.Context(), first); err != nil {
			t.Errorf("%s: %v", clusterClient, err)
		}
	}
}

func (p *plainAPIServer) testConversion(t *testing.T) {
	stored := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "converted"}}
	stored.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: stored.Namespace, Name: "web"}
	stored.Spec.Replicas = 3
	if err := p.karmada.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	old := &workv1alpha1.ResourceBinding{}
	if err := p.karmada.Get(t.Context(), client.ObjectKeyFromObject(stored), old); err != nil {
		t.Fatal(err)
	}
	if err := checkEqual("replicas in the old version", int32(3), old.Spec.Resource.Replicas); err != nil {
		t.Error(err)
	}
}

func (p *plainAPIServer) testClusterAPI(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "outside"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	testenv.Eventually(t, "a Cluster is stored", func(ctx context.Context) error {
		return p.karmada.Create(ctx, cluster.DeepCopy())
	})
	stored := await(t, p.karmada, cluster, exists)
	if err := checkEqual("number of resource models", 9, len(stored.Spec.ResourceModels)); err != nil {
		t.Error(err)
	}
	invalid := cluster.DeepCopy()
	invalid.Name, invalid.Spec.SyncMode = "wrong", "Perhaps"
	if err := p.karmada.Create(t.Context(), invalid); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.syncMode") {
		t.Errorf("got error %v", err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.issuer.PEM())
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/livez": http.StatusOK, "/metrics": http.StatusForbidden,
		"/apis/cluster.karmada.io/v1alpha1/clusters": http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://%s:%d%s", standalone.Loopback, p.aggregatedPort, path), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := anonymous.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("an anonymous request for %s: %s, want %d", path, response.Status, want)
		}
	}
}

func (p *plainAPIServer) testCertificateRotation(t *testing.T) {
	p.issueCertificate(t, "second")
	for program, port := range map[string]int{programs.Webhook: p.webhookPort, programs.AggregatedAPIServer: p.aggregatedPort} {
		testenv.Eventually(t, program+" serves the new certificate", func(ctx context.Context) error {
			name, err := p.servedCommonName(ctx, port)
			return errors.Join(err, checkEqual("name in the certificate", "second", name))
		})
	}
	if err := p.karmada.List(t.Context(), &clusterv1alpha1.ClusterList{}); err != nil {
		t.Errorf("the Cluster API: %v", err)
	}
	invalidPolicy := policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Namespace = "elsewhere" })
	if err := p.karmada.Create(t.Context(), invalidPolicy(metav1.NamespaceDefault)); !apierrors.IsForbidden(err) {
		t.Errorf("got error %v", err)
	}
}

func (p *plainAPIServer) testWebhookOutage(t *testing.T) {
	free, protected := configMap(metav1.NamespaceDefault, "free"), configMap(metav1.NamespaceDefault, "protected")
	protected.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	for _, object := range []client.Object{free, protected} {
		if err := p.karmada.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.karmada.Delete(t.Context(), protected); !apierrors.IsForbidden(err) {
		t.Errorf("a protected object: %v", err)
	}
	p.stopWebhook()
	if err := p.karmada.Delete(t.Context(), free); err != nil {
		t.Errorf("an object without protection: %v", err)
	}
	for what, err := range map[string]error{
		"a protected object": p.karmada.Delete(t.Context(), protected),
		"a policy":           p.karmada.Create(t.Context(), policyWithSpec(func(*policyv1alpha1.PropagationSpec) {})(metav1.NamespaceDefault)),
	} {
		if !apierrors.IsInternalError(err) {
			t.Errorf("%s without a webhook: %v", what, err)
		}
	}
}
