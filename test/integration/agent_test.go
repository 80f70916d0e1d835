package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/podenvironment"
	agentdomain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/testenv"
)

// maxDeliveryTime is the upper bound for the delivery of a Work to a member that can be reached.
// Delivery takes about one second. The rest is a margin for a busy machine. A client that
// sleeps between two tries would take 30 seconds and so exceed this bound.
const maxDeliveryTime = 20 * time.Second

// pullCluster is a member in pull mode with its own API server. Its agent has only the permissions
// of agents in the control plane.
type pullCluster struct {
	env    *testenv.Env
	name   string
	member *testenv.Member
	// karmadaKubeconfig and memberKubeconfig are the paths of the kubeconfigs with which the agent
	// accesses the control plane and the member.
	karmadaKubeconfig, memberKubeconfig string
}

// newPullCluster starts a member and creates credentials and RBAC objects for its agent. All
// are removed at the end of the test.
func newPullCluster(t *testing.T, env *testenv.Env, name string) *pullCluster {
	t.Helper()
	p := startPullMember(t, env, name)
	p.writeKubeconfig(t, env.Config.Host, time.Hour)
	p.grantAgentRBAC(t)
	t.Cleanup(func() { removeCluster(t, env, name) })
	return p
}

// startPullMember starts a member without credentials for its agent.
func startPullMember(t *testing.T, env *testenv.Env, name string) *pullCluster {
	t.Helper()
	dir := t.TempDir()
	started, err := testenv.StartMember(t.Context(), filepath.Join(dir, "member"), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	p := &pullCluster{env: env, name: name, member: started, karmadaKubeconfig: filepath.Join(dir, "karmada.config"), memberKubeconfig: filepath.Join(dir, "member.config")}
	writeTokenKubeconfig(t, p.memberKubeconfig, started)
	return p
}

// grantAgentRBAC creates the RBAC objects of the agent in the control plane, and no other permissions.
func (p *pullCluster) grantAgentRBAC(t *testing.T) {
	t.Helper()
	executionNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(p.name)}}
	if err := p.env.Karmada.Create(t.Context(), executionNamespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, rbacObject := range agentdomain.RBACObjects(p.name, clusterv1alpha1.NamespaceKarmadaCluster) {
		object, ok := rbacObject.(client.Object)
		if !ok {
			t.Fatalf("%T is not a client.Object", rbacObject)
		}
		if err := p.env.Karmada.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		cleanUp(t, p.env, object)
	}
}

// writeKubeconfig writes the agent's kubeconfig with a new client certificate that is valid for
// the given lifetime.
func (p *pullCluster) writeKubeconfig(t *testing.T, server string, lifetime time.Duration) {
	t.Helper()
	certs := p.env.Certificates()
	ca, err := certs.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	certName := "agent-" + uuid.NewString()
	if _, err := ca.EnsureLeaf(certName, pki.Leaf{CommonName: agentdomain.User(p.name), Organizations: []string{agentdomain.Group}, Lifetime: lifetime}); err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteKubeconfig(p.karmadaKubeconfig, pki.KubeconfigContext{
		Name: "karmada-apiserver", User: p.name, Server: server, CA: ca.PEM(),
		ClientCertFile: certs.CertFile(certName), ClientKeyFile: certs.KeyFile(certName),
	}); err != nil {
		t.Fatal(err)
	}
}

func writeTokenKubeconfig(t *testing.T, path string, target *testenv.Member) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: target.Config.Host, CertificateAuthorityData: target.Config.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: target.Token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// agentFlags returns the flags of an agent with short periods.
func (p *pullCluster) agentFlags(extraFlags ...string) []string {
	if !slices.ContainsFunc(extraFlags, func(flag string) bool { return strings.HasPrefix(flag, "--report-secrets=") }) {
		// Report no Secrets, because the members run no controller that issues their tokens.
		extraFlags = append(extraFlags, "--report-secrets=None")
	}
	return append([]string{
		"--cluster-name=" + p.name, "--karmada-kubeconfig=" + p.karmadaKubeconfig, "--kubeconfig=" + p.memberKubeconfig,
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--cluster-status-update-frequency=1s", "--cluster-success-threshold=0s", "--cluster-lease-duration=4s",
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
	}, extraFlags...)
}

// agentRun is one run of an agent in this process.
type agentRun struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// stop stops the agent and returns its error.
func (a *agentRun) stop(t *testing.T) error {
	t.Helper()
	a.cancel()
	select {
	case <-a.done:
		return a.err
	case <-time.After(testenv.Patience):
		t.Fatalf("the agent still runs %s after it was stopped", testenv.Patience)
		return nil
	}
}

// startAgent runs an agent in this process until the end of the test or until it is stopped.
func (p *pullCluster) startAgent(t *testing.T, extraFlags ...string) *agentRun {
	t.Helper()
	featureGates, flagSet := gates.New(), pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o := agent.Default(featureGates)
	o.AddFlags(flagSet)
	if err := errors.Join(flagSet.Parse(p.agentFlags(extraFlags...)), o.Validate()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &agentRun{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.err = o.Run(ctx)
	}()
	t.Cleanup(func() {
		if err := l.stop(t); err != nil && !t.Failed() {
			t.Logf("the agent ended with %v", err)
		}
	})
	return l
}

func (p *pullCluster) cluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
}

// leaderElectionLease returns the Lease for the leader election of the agent.
func (p *pullCluster) leaderElectionLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: agentdomain.LeaderLeasePrefix + p.name}}
}

// memberID returns the identity of the member.
func (p *pullCluster) memberID(t *testing.T) string {
	t.Helper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := p.member.Client.Get(t.Context(), client.ObjectKeyFromObject(system), system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}

func (p *pullCluster) awaitReady(t *testing.T) *clusterv1alpha1.Cluster {
	t.Helper()
	return await(t, p.env.Karmada, p.cluster(), func(c *clusterv1alpha1.Cluster) error {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return fmt.Errorf("conditions are %+v", c.Status.Conditions)
		}
		return checkEqual("taints", 0, len(c.Spec.Taints))
	})
}

// removeCluster deletes a Cluster. It removes the finalizers of Works that no agent releases any more.
func removeCluster(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(env.Karmada.Delete(context.WithoutCancel(t.Context()), cluster)); err != nil {
		t.Errorf("deleting Cluster %s: %v", name, err)
	}
	testenv.Eventually(t, "deletion of Cluster "+name, func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(name))); err != nil {
			return err
		}
		for i := range works.Items {
			dropFinalizers := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := client.IgnoreNotFound(env.Karmada.Patch(ctx, &works.Items[i], dropFinalizers)); err != nil {
				return err
			}
		}
		return checkAbsent(ctx, env.Karmada, cluster)
	})
}

// deploy propagates a Deployment to this member only and waits for the member object.
func (p *pullCluster) deploy(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	template := deployment(namespace, name, 2)
	p.env.Create(t, policyFor(t, placementOn(p.name), template), template)
	return await(t, p.member.Client, deployment(namespace, name, 2), hasReplicas(2))
}

// scaleAndMeasure changes the replicas of a template and returns the time until the member has
// them.
func (p *pullCluster) scaleAndMeasure(t *testing.T, template *appsv1.Deployment, to int32) time.Duration {
	t.Helper()
	testenv.Update(t, p.env.Karmada, deployment(template.Namespace, template.Name, 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = to })
	began := clock.now()
	await(t, p.member.Client, deployment(template.Namespace, template.Name, 0), hasReplicas(to))
	return clock.since(began)
}

func TestAgentWorksWithAgentRBACOnly(t *testing.T) {
	env := alone(t)
	p := newPullCluster(t, env, "pull-serves")
	clusterFlags := []string{"--cluster-provider=metal", "--cluster-region=north", "--cluster-zones=a,b", "--proxy-server-address=http://proxy:3128", "--cluster-api-endpoint=https://outside:6443"}
	running := p.startAgent(t, clusterFlags...)
	ready := p.awaitReady(t)
	want := clusterv1alpha1.ClusterSpec{
		ID: p.memberID(t), SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://outside:6443", ProxyURL: "http://proxy:3128",
		Provider: "metal", Region: "north", Zones: []string{"a", "b"},
		ResourceModels: ready.Spec.ResourceModels, Taints: ready.Spec.Taints, Zone: ready.Spec.Zone,
	}
	if diff := cmp.Diff(want, ready.Spec); diff != "" {
		t.Errorf("Cluster (-want +got):\n%s", diff)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: p.name}}
	await(t, env.Karmada, lease, func(l *coordinationv1.Lease) error {
		return errors.Join(checkEqual("holder", p.name, *l.Spec.HolderIdentity), checkEqual("owner", ready.UID, l.OwnerReferences[0].UID))
	})
	await(t, env.Karmada, p.leaderElectionLease(), func(l *coordinationv1.Lease) error {
		if len(l.OwnerReferences) != 1 {
			return fmt.Errorf("owners are %+v", l.OwnerReferences)
		}
		return checkEqual("owner of the leader election Lease", ready.UID, l.OwnerReferences[0].UID)
	})

	namespace := env.Namespace(t)
	template := p.deploy(t, namespace, "web")
	testenv.Eventually(t, "status update in "+p.name, func(ctx context.Context) error {
		object := deployment(namespace, "web", 0)
		if err := p.member.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.Status = appsv1.DeploymentStatus{ObservedGeneration: object.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		return p.member.Client.Status().Update(ctx, object)
	})
	await(t, env.Karmada, deployment(namespace, "web", 0), func(d *appsv1.Deployment) error { return checkEqual("ready", int32(2), d.Status.ReadyReplicas) })
	p.scaleAndMeasure(t, template, 3)
	testenv.Update(t, p.member.Client, deployment(namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 })
	await(t, p.member.Client, deployment(namespace, "web", 0), hasReplicas(3))

	retryAfterStall(t, "no writes after a restart", func() error {
		// Wait until the agent has written its pending status reports.
		awaitNoWrites(t, env, p.member)
		if err := running.stop(t); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		awaitNoWrites(t, env, p.member)
		before, began := countWrites(t, env, p.member), time.Now()
		running = p.startAgent(t, clusterFlags...)
		await(t, env.Karmada, lease, func(l *coordinationv1.Lease) error {
			if l.Spec.RenewTime.Before(&metav1.MicroTime{Time: began}) {
				return fmt.Errorf("the Lease was last renewed at %s", l.Spec.RenewTime)
			}
			return nil
		})
		return checkNoWrites(t, env, before, p.member)
	})

	deleteObject(t, env.Karmada, deployment(namespace, "web", 0))
	awaitGone(t, p.member.Client, deployment(namespace, "web", 0))
}

func TestAgentSurvivesControlPlaneOutage(t *testing.T) {
	env := joining(t)
	for name, c := range map[string]struct {
		startOutage func(*testing.T, *tcpProxy) (endOutage func())
	}{
		"API hangs": {func(_ *testing.T, g *tcpProxy) func() {
			g.setPaused(true)
			return func() { g.setPaused(false) }
		}},
		"API refuses connections": {func(t *testing.T, g *tcpProxy) func() {
			address := g.listener.Addr().String()
			g.stop()
			return func() { newTCPProxyAt(t, address, env.Config.Host) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPullCluster(t, env, "pull-outlives-"+strings.ToLower(strings.Fields(name)[1]))
			g := newTCPProxy(t, env.Config.Host)
			p.writeKubeconfig(t, g.URL(), time.Hour)
			running := p.startAgent(t)
			p.awaitReady(t)
			template := p.deploy(t, env.Namespace(t), "web")

			// The outage lasts longer than the renew deadline of the leader election.
			endOutage := c.startOutage(t, g)
			testenv.Update(t, env.Karmada, deployment(template.Namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
			await(t, env.Karmada, workOf(t, p.name, template), func(w *workv1alpha1.Work) error {
				manifest, err := manifestOf(w)
				if err != nil {
					return err
				}
				if !strings.Contains(fmt.Sprint(manifest.Object["spec"]), "replicas:5") {
					return errors.New("the Work has the old replicas")
				}
				return nil
			})
			testenv.Holds(t, "the agent keeps running during the outage", 6*time.Second, func(ctx context.Context) error {
				select {
				case <-running.done:
					return fmt.Errorf("the agent ended with %w", running.err)
				default:
				}
				return p.checkReplicas(ctx, template, 2)
			})
			endOutage()
			began := clock.now()
			await(t, p.member.Client, deployment(template.Namespace, "web", 0), hasReplicas(5))
			if took := clock.since(began); took > maxDeliveryTime {
				t.Errorf("the Work was applied %s after the end of the outage", took)
			}
		})
	}
}

// checkReplicas returns an error if the Deployment in the member does not have the wanted replicas.
func (p *pullCluster) checkReplicas(ctx context.Context, template *appsv1.Deployment, want int32) error {
	object := deployment(template.Namespace, template.Name, 0)
	if err := p.member.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return hasReplicas(want)(object)
}

func TestAgentWaitsForControlPlaneAndMember(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-waits")
	g := newTCPProxy(t, env.Config.Host)
	address := g.listener.Addr().String()
	p.writeKubeconfig(t, g.URL(), time.Hour)
	g.stop()
	p.member.Stop()
	running := p.startAgent(t)
	testenv.Holds(t, "the agent keeps running while no API server answers", time.Second, func(context.Context) error {
		select {
		case <-running.done:
			return fmt.Errorf("the agent ended with %w", running.err)
		default:
			return nil
		}
	})
	newTCPProxyAt(t, address, env.Config.Host)
	if err := p.member.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.awaitReady(t)
}

func TestAgentUsesRenewedCredentials(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-renews")
	running := p.startAgent(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")
	p.writeKubeconfig(t, env.Config.Host, time.Second)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: p.name}}
	testenv.Eventually(t, "expired credentials of the agent", func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if silent := time.Since(lease.Spec.RenewTime.Time); silent < 3*time.Second || clock.hasStalledRecently() {
			return fmt.Errorf("the agent renewed its Lease %s ago", silent)
		}
		return nil
	})
	testenv.Update(t, env.Karmada, deployment(template.Namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 4 })
	testenv.Holds(t, "no delivery with expired credentials", quietPeriod, func(ctx context.Context) error { return p.checkReplicas(ctx, template, 2) })
	p.writeKubeconfig(t, env.Config.Host, time.Hour)
	await(t, p.member.Client, deployment(template.Namespace, "web", 0), hasReplicas(4))
	select {
	case <-running.done:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
	if took := p.scaleAndMeasure(t, template, 6); took > maxDeliveryTime {
		t.Errorf("delivery with new credentials took %s", took)
	}
}

func TestAgentDoesNotRecreateDeletedCluster(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-leaves")
	running := p.startAgent(t)
	before := p.awaitReady(t)
	namespace := env.Namespace(t)
	p.deploy(t, namespace, "web")
	deleteObject(t, env.Karmada, p.cluster())
	awaitGone(t, p.member.Client, deployment(namespace, "web", 0))
	awaitGone(t, env.Karmada, p.cluster())
	testenv.Holds(t, "the Cluster is not recreated", settledPeriod, func(ctx context.Context) error {
		select {
		case <-running.done:
			return fmt.Errorf("the agent ended with %w", running.err)
		default:
			return checkAbsent(ctx, env.Karmada, p.cluster())
		}
	})
	if err := running.stop(t); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	awaitGone(t, env.Karmada, p.leaderElectionLease())
	// Wait for the deletion of the execution namespace, which deletes the RBAC objects in the
	// namespace. Then create these objects again.
	awaitGone(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(p.name)}})
	p.grantAgentRBAC(t)
	p.startAgent(t)
	if after := p.awaitReady(t); after.UID == before.UID {
		t.Error("the Cluster has the UID of the deleted one")
	}
}

func TestAgentReportsSecrets(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-reports")
	ctx, cancel := context.WithCancel(t.Context())
	var issuing sync.WaitGroup
	issuing.Go(func() { p.issueServiceAccountTokens(ctx) })
	t.Cleanup(func() { cancel(); issuing.Wait() })
	p.startAgent(t, "--report-secrets=KubeCredentials,KubeImpersonator")
	registered := p.awaitReady(t)
	secretNamespace := clusterv1alpha1.NamespaceKarmadaCluster
	reference := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: secretNamespace, Name: name}
	}
	if diff := cmp.Diff([]*clusterv1alpha1.LocalSecretReference{reference(p.name), reference(p.name + "-impersonator")},
		[]*clusterv1alpha1.LocalSecretReference{registered.Spec.SecretRef, registered.Spec.ImpersonatorSecretRef}); diff != "" {
		t.Errorf("Secret references (-want +got):\n%s", diff)
	}
	for name, keys := range map[string][]string{p.name: {"caBundle", "token"}, p.name + "-impersonator": {"token"}} {
		secret := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: name}}, exists)
		for _, key := range keys {
			if len(secret.Data[key]) == 0 {
				t.Errorf("Secret %s has no key %s", name, key)
			}
		}
		if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != registered.UID {
			t.Errorf("Secret %s has owners %+v", name, secret.OwnerReferences)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-" + p.name}}
	await(t, p.member.Client, role, exists)
}

// issueServiceAccountTokens does what kube-controller-manager does in a member: it adds tokens to
// the Secrets of service accounts.
func (p *pullCluster) issueServiceAccountTokens(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		secrets := &corev1.SecretList{}
		if p.member.Client.List(ctx, secrets, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)) != nil {
			continue
		}
		for i := range secrets.Items {
			secret, account := &secrets.Items[i], &corev1.ServiceAccount{}
			key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}
			if len(secret.Data) > 0 || p.member.Client.Get(ctx, key, account) != nil {
				continue
			}
			secret.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
			secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(p.member.Token)}
			_ = p.member.Client.Update(ctx, secret)
		}
	}
}

// startAgentProcess runs an agent in a separate process that a test can kill. The variables are
// added to the environment of the process.
func (p *pullCluster) startAgentProcess(t *testing.T, variables []string, extraFlags ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(executable, p.agentFlags(extraFlags...)...)
	program.Env = slices.Concat(os.Environ(), []string{programVariable + "=" + programs.Agent}, variables)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	return program
}

// podEnvironment returns the environment variables of a container in a Pod.
func podEnvironment(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"kubernetes.io":{"pod":{"name":"karmada-agent-0","uid":"` + uuid.NewString() + `"}}}`))
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("e30."+claims+".c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{podenvironment.ServiceAccountVariable + "=" + dir}
}

func TestAgentResumesAfterKill(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-killed")
	pod := podEnvironment(t)
	// The Lease is valid so long that the next agent cannot simply wait for its expiry.
	longLeaseFlags := []string{"--leader-elect-lease-duration=5m", "--leader-elect-renew-deadline=10s"}
	killed := p.startAgentProcess(t, pod, longLeaseFlags...)
	p.awaitReady(t)
	namespace := env.Namespace(t)
	template := p.deploy(t, namespace, "web")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	testenv.Update(t, env.Karmada, deployment(namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	kept := configMap(namespace, "kept")
	env.Create(t, policyFor(t, placementOn(p.name), kept), kept)
	p.startAgentProcess(t, pod, longLeaseFlags...)
	began := time.Now()
	await(t, p.member.Client, template, hasReplicas(5))
	t.Logf("the next agent delivered the changes after %s", time.Since(began))
	await(t, p.member.Client, configMap(namespace, "kept"), exists)
}

func TestAgentLosesNoChangesOnConnectionReset(t *testing.T) {
	env := joining(t)
	p := newPullCluster(t, env, "pull-resets")
	g := newTCPProxy(t, env.Config.Host)
	p.writeKubeconfig(t, g.URL(), time.Hour)
	running := p.startAgent(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")
	for round := range 8 {
		g.closeConnections()
		if took := p.scaleAndMeasure(t, template, int32(3+round)); took > maxDeliveryTime {
			t.Errorf("delivery after connection reset %d took %s", round, took)
		}
	}
	select {
	case <-running.done:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
}
