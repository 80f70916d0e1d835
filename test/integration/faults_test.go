package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

// Names of the clusters that faults affect. member1 is affected only by faults that affect all
// clusters.
const (
	pushMemberName = "fault-push"
	pullMemberName = "fault-pull"
	allClusters    = "*"
)

const (
	// maxDelayWithoutFault is the longest time in which a change reaches an unaffected cluster.
	// maxDelayAfterFault is the longest time in which pending changes reach an affected cluster
	// after the end of the fault. Both are long enough for a busy machine; the log has the measured
	// times. Both are shorter than the 30 seconds for which a component waits if it waits for
	// another cluster or for its backoff.
	maxDelayWithoutFault, maxDelayAfterFault = 20 * time.Second, 20 * time.Second
)

// faultFixture has three clusters with the same workload: member1, a push-mode cluster behind a
// tcpProxy, and a pull-mode cluster whose agent reaches the control plane through a tcpProxy.
type faultFixture struct {
	env *testenv.Env
	t   *testing.T
	// namespace contains all templates. round counts how often the templates were changed.
	namespace  string
	round      int32
	pushMember *testenv.Member
	// pushAccount owns the token that the control plane has for pushMember.
	pushAccount *corev1.ServiceAccount
	pushProxy   *tcpProxy
	pullMember  *pullCluster
	agentProxy  *tcpProxy
	// componentProxy is between the control plane and its components.
	componentProxy *tcpProxy
	agent          *agentRun
	// unmanagedObjects are existing objects of another owner with the name of a template, by
	// cluster.
	unmanagedObjects map[string]*corev1.ConfigMap
}

func newFaultFixture(t *testing.T, env *testenv.Env) *faultFixture {
	t.Helper()
	componentProxy := newTCPProxy(t, env.Config.Host)
	env.Through = componentProxy.URL()
	withSettings(t, env, "", func(s *controllermanager.Options) {
		fastClusterStatus(time.Second, time.Second)(s)
		s.Monitor.Period = 200 * time.Millisecond
		s.Monitor.Grace.Period, s.Monitor.Grace.Startup = 6*time.Second, 6*time.Second
	})
	t.Cleanup(func() { env.Through = "" })
	w := &faultFixture{env: env, t: t, componentProxy: componentProxy, namespace: env.Namespace(t), unmanagedObjects: map[string]*corev1.ConfigMap{}}
	var err error
	if w.pushMember, err = testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), pushMemberName), pushMemberName); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pushMember.Stop)
	w.pushAccount, w.pushMember.Token, _ = newAdminAccount(t, w.pushMember, "first")
	w.pushProxy = newTCPProxy(t, w.pushMember.Config.Host)
	if err := env.Register(t.Context(), pushMemberName, w.pushMember); err != nil {
		t.Fatal(err)
	}
	deleteClusterAfterTest(t, env, pushMemberName)
	testenv.Update(t, env.Karmada, clusterNamed(pushMemberName), func(c *clusterv1alpha1.Cluster) {
		c.Spec.APIEndpoint, c.Spec.InsecureSkipTLSVerification = w.pushProxy.URL(), true
	})
	w.pullMember = newPullCluster(t, env, pullMemberName)
	w.agentProxy = newTCPProxy(t, env.Config.Host)
	w.pullMember.writeKubeconfig(t, w.agentProxy.URL(), time.Hour)
	w.agent = w.pullMember.startAgent(t)
	for _, name := range w.clusters() {
		await(t, env.Karmada, clusterNamed(name), allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints()))
	}
	w.deployWorkload()
	return w
}

func (w *faultFixture) clusters() []string { return []string{member1, pushMemberName, pullMemberName} }

// unaffectedClusters returns the clusters that none of the faults affects.
func (w *faultFixture) unaffectedClusters(faults []fault) []string {
	return slices.DeleteFunc(w.clusters(), func(name string) bool {
		return slices.ContainsFunc(faults, func(f fault) bool { return f.cluster == name || f.cluster == allClusters })
	})
}

// clientOf returns a client that reaches the cluster without a proxy.
func (w *faultFixture) clientOf(cluster string) client.Client {
	switch cluster {
	case pushMemberName:
		return w.pushMember.Client
	case pullMemberName:
		return w.pullMember.member.Client
	default:
		return memberClient(w.env, cluster)
	}
}

func (w *faultFixture) keptConfigMap() *corev1.ConfigMap  { return configMap(w.namespace, "kept") }
func (w *faultFixture) webDeployment() *appsv1.Deployment { return deployment(w.namespace, "web", 1) }
func (w *faultFixture) unmanagedConfigMap() *corev1.ConfigMap {
	return configMap(w.namespace, "unmanaged")
}
func (w *faultFixture) webService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func (w *faultFixture) roundConfigMap(what string) *corev1.ConfigMap {
	return configMap(w.namespace, fmt.Sprintf("%s-%d", what, w.round))
}

func (w *faultFixture) roundColor() string { return fmt.Sprintf("round-%d", w.round) }

// deployWorkload propagates the workload to all clusters. For one template the clusters have an
// object of another owner.
func (w *faultFixture) deployWorkload() {
	policy := policyFor(w.t, placementOn(w.clusters()...), w.keptConfigMap(), w.webDeployment(), w.webService(), w.unmanagedConfigMap())
	policy.Name = "everything"
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{
		{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Service"}, {APIVersion: "apps/v1", Kind: "Deployment"},
	}
	w.env.Create(w.t, policy, w.keptConfigMap(), w.webDeployment(), w.webService())
	for _, name := range w.clusters() {
		for _, object := range []client.Object{w.keptConfigMap(), w.webDeployment(), w.webService()} {
			await(w.t, w.clientOf(name), object, exists)
		}
		w.unmanagedObjects[name] = w.unmanagedConfigMap()
		if err := w.clientOf(name).Create(w.t.Context(), w.unmanagedObjects[name]); err != nil {
			w.t.Fatal(err)
		}
	}
	w.env.Create(w.t, w.unmanagedConfigMap())
	await(w.t, w.env.Karmada, bindingOf(w.t, w.unmanagedConfigMap()), func(b *workv1alpha2.ResourceBinding) error {
		if !meta.IsStatusConditionFalse(b.Status.Conditions, workv1alpha2.FullyApplied) {
			return fmt.Errorf("conditions %+v", b.Status.Conditions)
		}
		return nil
	})
	for _, name := range w.clusters() {
		w.simulateRollout(name)
	}
	w.awaitReadyReplicas(3)
}

// startRound creates a template that changeTemplates deletes.
func (w *faultFixture) startRound() {
	w.round++
	w.env.Create(w.t, w.roundConfigMap("going"))
	for _, name := range w.clusters() {
		await(w.t, w.clientOf(name), w.roundConfigMap("going"), exists)
	}
}

// changeTemplates updates, scales, deletes and creates templates.
func (w *faultFixture) changeTemplates() {
	testenv.Update(w.t, w.env.Karmada, w.keptConfigMap(), func(c *corev1.ConfigMap) { c.Data["color"] = w.roundColor() })
	testenv.Update(w.t, w.env.Karmada, w.webDeployment(), func(d *appsv1.Deployment) { *d.Spec.Replicas = 1 + w.round })
	deleteObject(w.t, w.env.Karmada, w.roundConfigMap("going"))
	w.env.Create(w.t, w.roundConfigMap("coming"))
}

// awaitChanges waits until a cluster has the changes and returns how long that took.
func (w *faultFixture) awaitChanges(cluster string) time.Duration {
	w.t.Helper()
	arrived := false
	defer func() {
		if !arrived {
			w.t.Logf("cluster %s does not get all changes", cluster)
		}
	}()
	began, clusterClient := clock.now(), w.clientOf(cluster)
	await(w.t, clusterClient, w.keptConfigMap(), hasColor(w.roundColor()))
	await(w.t, clusterClient, w.webDeployment(), hasReplicas(1+w.round))
	await(w.t, clusterClient, w.roundConfigMap("coming"), exists)
	awaitGone(w.t, clusterClient, w.roundConfigMap("going"))
	arrived = true
	return clock.since(began)
}

// simulateRollout makes all replicas ready in a cluster.
func (w *faultFixture) simulateRollout(cluster string) {
	w.t.Helper()
	testenv.Eventually(w.t, "status in "+cluster, func(ctx context.Context) error {
		d := w.webDeployment()
		if err := w.clientOf(cluster).Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		return w.clientOf(cluster).Status().Update(ctx, d)
	})
}

// awaitReadyReplicas waits until the template in the control plane has the wanted number of ready
// replicas. Its error contains the statuses of all clusters.
func (w *faultFixture) awaitReadyReplicas(want int32) {
	w.t.Helper()
	testenv.Eventually(w.t, "ready replicas of the template", func(ctx context.Context) error {
		template, bound := w.webDeployment(), bindingOf(w.t, w.webDeployment())
		if err := w.env.Karmada.Get(ctx, client.ObjectKeyFromObject(template), template); err != nil {
			return err
		}
		if template.Status.ReadyReplicas == want {
			return nil
		}
		if err := w.env.Karmada.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return err
		}
		status, err := json.Marshal(bound.Status)
		return errors.Join(err, fmt.Errorf("%d replicas are ready, want %d; the status of the binding is %s", template.Status.ReadyReplicas, want, status))
	})
}

// memberObjectIDs returns the UIDs of the objects that must stay in a cluster, by name, with
// the resourceVersion of the unmanaged object.
func (w *faultFixture) memberObjectIDs(ctx context.Context, cluster string) (map[string]string, error) {
	ids := map[string]string{}
	for name, object := range map[string]client.Object{"ConfigMap": w.keptConfigMap(), "Deployment": w.webDeployment(), "Service": w.webService(), "unmanaged": w.unmanagedConfigMap()} {
		if err := w.clientOf(cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", name, cluster, err)
		}
		ids[name] = string(object.GetUID())
		if name == "unmanaged" {
			ids[name] += " " + object.GetResourceVersion()
		}
	}
	return ids, nil
}

func (w *faultFixture) mustGetObjectIDs(cluster string) map[string]string {
	w.t.Helper()
	ids, err := w.memberObjectIDs(w.t.Context(), cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// awaitRecovery waits until all clusters are ready and without taints, their statuses are
// aggregated, and drift in them is repaired.
func (w *faultFixture) awaitRecovery() {
	w.t.Helper()
	for _, name := range w.clusters() {
		await(w.t, w.env.Karmada, clusterNamed(name), allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints()))
	}
	for _, name := range w.clusters() {
		w.simulateRollout(name)
		testenv.Update(w.t, w.clientOf(name), w.keptConfigMap(), func(c *corev1.ConfigMap) { c.Data["color"] = "by hand" })
		await(w.t, w.clientOf(name), w.keptConfigMap(), hasColor(w.roundColor()))
	}
	w.awaitReadyReplicas(3 * (1 + w.round))
	for _, template := range []client.Object{w.keptConfigMap(), w.webDeployment(), w.webService(), w.roundConfigMap("coming")} {
		await(w.t, w.env.Karmada, bindingOf(w.t, template), allBindingChecks(hasClusters(pullMemberName, pushMemberName, member1), func(b *workv1alpha2.ResourceBinding) error {
			return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
		}))
	}
	awaitGone(w.t, w.env.Karmada, bindingOf(w.t, w.roundConfigMap("going")))
}

// fault is one fault that the test injects.
type fault struct {
	// cluster is the affected cluster, allClusters, or empty for none.
	cluster string
	// inject begins the fault, heal ends it.
	inject, heal func(*faultFixture)
	// during runs checks while the fault lasts; nil runs none.
	during func(*faultFixture)
}

// awaitFaultDetected waits until the Cluster reports the fault.
func awaitFaultDetected(env *testenv.Env, name string, status metav1.ConditionStatus, taint string) func(*faultFixture) {
	return func(w *faultFixture) {
		await(w.t, env.Karmada, clusterNamed(name), allChecks(hasReadyStatus(status), hasTaints(taint)))
	}
}

// checkUnaffected checks that changes reach the cluster during the fault and that it stays
// ready.
func checkUnaffected(env *testenv.Env, name string) func(*faultFixture) {
	return func(w *faultFixture) {
		w.awaitChanges(name)
		retryAfterStall(w.t, name+" is ready", func() error {
			return testenv.Held(w.t.Context(), 2*time.Second, func(ctx context.Context) error {
				c := clusterNamed(name)
				if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
					return err
				}
				return allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints())(c)
			})
		})
	}
}

// keepFaultFor waits while the fault lasts and checks that the member objects stay.
func keepFaultFor(during time.Duration, name string) func(*faultFixture) {
	return func(w *faultFixture) {
		testenv.Holds(w.t, "objects in "+name+" stay", during, func(ctx context.Context) error {
			_, err := w.memberObjectIDs(ctx, name)
			return err
		})
	}
}

// startFlapping makes a tcpProxy accept and refuse connections in turn until end is called.
func startFlapping(g *tcpProxy, every time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var turns sync.WaitGroup
	turns.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for refusing := true; ; refusing = !refusing {
			g.setRefusing(refusing)
			select {
			case <-ctx.Done():
				g.setRefusing(false)
				return
			case <-ticker.C:
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); turns.Wait() })
}

// faultCases returns the faults; some affect a member and an agent at the same time.
func faultCases(env *testenv.Env) map[string][]fault {
	var stopFuncs []func()
	const skew = 5 * time.Minute
	setRefusing := func(proxyOf func(*faultFixture) *tcpProxy, enabled bool) func(*faultFixture) {
		return func(w *faultFixture) { proxyOf(w).setRefusing(enabled) }
	}
	setPaused := func(proxyOf func(*faultFixture) *tcpProxy, enabled bool) func(*faultFixture) {
		return func(w *faultFixture) { proxyOf(w).setPaused(enabled) }
	}
	toMember, toKarmada := func(w *faultFixture) *tcpProxy { return w.pushProxy }, func(w *faultFixture) *tcpProxy { return w.agentProxy }
	partition := func(proxyOf func(*faultFixture) *tcpProxy) func(*faultFixture) {
		return func(w *faultFixture) { proxyOf(w).partition() }
	}
	injectFlapping := func(proxyOf func(*faultFixture) *tcpProxy) func(*faultFixture) {
		return func(w *faultFixture) {
			end := startFlapping(proxyOf(w), time.Second)
			w.t.Cleanup(end)
			stopFuncs = append(stopFuncs, end)
		}
	}
	stopFlapping := func(*faultFixture) {
		for _, end := range stopFuncs {
			end()
		}
	}
	removeDelays := func(w *faultFixture) {
		w.pushProxy.redirect(w.t, w.pushMember.Config.Host)
		w.agentProxy.redirect(w.t, env.Config.Host)
	}
	return map[string][]fault{
		"the API server of a member is down, and connections of an agent hang": {
			{
				cluster: pushMemberName,
				inject:  func(w *faultFixture) { w.pushMember.Stop() },
				heal: func(w *faultFixture) {
					if err := w.pushMember.Start(context.WithoutCancel(w.t.Context())); err != nil {
						w.t.Fatal(err)
					}
				},
				during: awaitFaultDetected(env, pushMemberName, metav1.ConditionFalse, notReadyTaint),
			},
			{cluster: pullMemberName, inject: setPaused(toKarmada, true), heal: setPaused(toKarmada, false), during: keepFaultFor(4*time.Second, pullMemberName)},
		},
		"a member hangs, and connections of an agent are refused": {
			{cluster: pushMemberName, inject: setPaused(toMember, true), heal: setPaused(toMember, false), during: keepFaultFor(3*time.Second, pushMemberName)},
			{cluster: pullMemberName, inject: setRefusing(toKarmada, true), heal: setRefusing(toKarmada, false)},
		},
		"a member is partitioned": {
			{cluster: pushMemberName, inject: partition(toMember), heal: setPaused(toMember, false), during: awaitFaultDetected(env, pushMemberName, metav1.ConditionFalse, notReadyTaint)},
		},
		"an agent is partitioned": {
			{cluster: pullMemberName, inject: partition(toKarmada), heal: setPaused(toKarmada, false), during: awaitFaultDetected(env, pullMemberName, metav1.ConditionUnknown, unreachableTaint)},
		},
		"connections of a member and of an agent flap": {
			{cluster: pushMemberName, inject: injectFlapping(toMember), heal: stopFlapping, during: keepFaultFor(4*time.Second, pushMemberName)},
			{cluster: pullMemberName, inject: injectFlapping(toKarmada), heal: stopFlapping},
		},
		"a member is slow": {{
			cluster: pushMemberName,
			inject: func(w *faultFixture) {
				w.pushProxy.redirect(w.t, startProxyToMember(w.t, w.pushMember.Config, delayResponses(time.Second))) //nolint:bodyclose // delayResponses does not replace the body
			},
			heal:   removeDelays,
			during: checkUnaffected(env, pushMemberName),
		}},
		"responses of the control plane to an agent are slow": {{
			cluster: pullMemberName,
			inject: func(w *faultFixture) {
				w.agentProxy.redirect(w.t, startProxyToKarmada(w.t, env, pullMemberName, unchangedTransport, delayResponses(500*time.Millisecond))) //nolint:bodyclose // delayResponses does not replace the body
			},
			heal:   removeDelays,
			during: checkUnaffected(env, pullMemberName),
		}},
		"the token for a member is invalid": {{
			cluster: pushMemberName,
			inject:  (*faultFixture).invalidateToken,
			heal:    func(w *faultFixture) { w.pushAccount = w.renewToken() },
			during:  awaitFaultDetected(env, pushMemberName, metav1.ConditionFalse, notReadyTaint),
		}},
		"the certificate of an agent is expired": {{
			cluster: pullMemberName,
			inject:  func(w *faultFixture) { w.pullMember.writeKubeconfig(w.t, w.agentProxy.URL(), time.Second) },
			heal:    func(w *faultFixture) { w.pullMember.writeKubeconfig(w.t, w.agentProxy.URL(), time.Hour) },
			during:  (*faultFixture).awaitMissingHeartbeats,
		}},
		"the clock of an agent is ahead": {{
			cluster: pullMemberName,
			inject: func(w *faultFixture) {
				w.agentProxy.redirect(w.t, startProxyToKarmada(w.t, env, pullMemberName, shiftRequestTimes(skew), shiftResponseTimes(-skew))) //nolint:bodyclose // shiftResponseTimes closes the original body
			},
			heal:   removeDelays,
			during: checkUnaffected(env, pullMemberName),
		}},
		"connections of the components are refused": {{
			cluster: allClusters,
			inject:  func(w *faultFixture) { w.componentProxy.setRefusing(true) }, heal: func(w *faultFixture) { w.componentProxy.setRefusing(false) },
			during: keepFaultFor(12*time.Second, pullMemberName),
		}},
		"a second agent has the same name": {{inject: (*faultFixture).runSecondAgent, heal: func(*faultFixture) {}}},
	}
}

// invalidateToken deletes the account of the member's token, and waits until the member rejects the
// token, so that the first requests with changes are rejected before a probe of the cluster is.
func (w *faultFixture) invalidateToken() {
	deleteObject(w.t, w.pushMember.Client, w.pushAccount)
	config := rest.AnonymousClientConfig(w.pushMember.Config)
	config.BearerToken = w.pushMember.Token
	tokenClient, err := client.New(config, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	testenv.Eventually(w.t, "rejection of the token", func(ctx context.Context) error {
		if err := tokenClient.Get(ctx, client.ObjectKeyFromObject(w.keptConfigMap()), w.keptConfigMap()); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("a request with the token returned %w", err)
		}
		return nil
	})
}

// renewToken stores a token of a new account for the member.
func (w *faultFixture) renewToken() *corev1.ServiceAccount {
	account, token, _ := newAdminAccount(w.t, w.pushMember, fmt.Sprintf("round-%d", w.round))
	w.pushMember.Token = token
	storeClusterToken(w.t, w.env, pushMemberName, token)
	return account
}

// awaitMissingHeartbeats waits until the agent has not renewed its Lease for 3 seconds.
func (w *faultFixture) awaitMissingHeartbeats() {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: pullMemberName}}
	await(w.t, w.env.Karmada, lease, func(l *coordinationv1.Lease) error {
		if silent := time.Since(l.Spec.RenewTime.Time); silent < 3*time.Second {
			return fmt.Errorf("the last heartbeat was %s ago", silent)
		}
		return nil
	})
}

// runSecondAgent runs an agent with the same cluster name in another cluster.
func (w *faultFixture) runSecondAgent() {
	before := await(w.t, w.env.Karmada, w.pullMember.cluster(), exists)
	secondCluster := *w.pullMember
	secondCluster.memberKubeconfig = filepath.Join(w.t.TempDir(), "other.config")
	writeTokenKubeconfig(w.t, secondCluster.memberKubeconfig, w.env.Members[member2])
	secondAgent := secondCluster.startAgent(w.t)
	select {
	case <-secondAgent.done:
	case <-time.After(testenv.Patience):
		w.t.Fatal("the second agent does not end")
	}
	for _, part := range []string{"has been registered", before.Spec.ID, "is another cluster", "choose another name"} {
		if secondAgent.err == nil || !strings.Contains(secondAgent.err.Error(), part) {
			w.t.Errorf("the second agent ended with %v, want %q in the error", secondAgent.err, part)
		}
	}
	after := await(w.t, w.env.Karmada, w.pullMember.cluster(), exists)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		w.t.Errorf("the Cluster of the first agent (-before +after):\n%s", diff)
	}
	if err := checkAbsent(w.t.Context(), memberClient(w.env, member2), w.keptConfigMap()); err != nil {
		w.t.Errorf("the workload in the other cluster: %v", err)
	}
}

// unchangedTransport returns the transport unchanged.
func unchangedTransport(next http.RoundTripper) http.RoundTripper { return next }

// A fault loses nothing: unaffected clusters get changes as before, objects in affected
// clusters are neither deleted nor recreated, and all clusters converge soon after the end of
// the fault.
func TestFaultsOnlyDelayTheAffectedClusters(t *testing.T) {
	env := aloneForLong(t)
	w := newFaultFixture(t, env)
	for name, simultaneous := range faultCases(env) {
		t.Run(name, func(t *testing.T) {
			parent := w.t
			w.t = t
			defer func() { w.t = parent }()
			w.runFaults(simultaneous)
		})
		if t.Failed() {
			return
		}
	}
}

// runFaults injects faults at the same time, changes templates, ends the faults and checks the
// recovery.
func (w *faultFixture) runFaults(faults []fault) {
	began := time.Now()
	w.startRound()
	before := map[string]map[string]string{}
	for _, name := range w.clusters() {
		before[name] = w.mustGetObjectIDs(name)
	}
	heal := sync.OnceFunc(func() {
		for _, f := range faults {
			f.heal(w)
		}
	})
	w.t.Cleanup(heal)
	for _, f := range faults {
		f.inject(w)
	}
	w.changeTemplates()
	unaffected := w.unaffectedClusters(faults)
	for _, name := range unaffected {
		if duration := w.awaitChanges(name); duration > maxDelayWithoutFault {
			w.t.Errorf("changes reached the unaffected cluster %s after %s", name, duration)
		}
	}
	if affected := len(w.clusters()) - len(unaffected); affected > 0 && len(unaffected) > 0 {
		for _, name := range unaffected {
			w.simulateRollout(name)
		}
		// For affected clusters, the status that they reported before the fault remains.
		w.awaitReadyReplicas(int32(len(unaffected))*(1+w.round) + int32(affected)*w.round)
	}
	for _, f := range faults {
		if f.during != nil {
			f.during(w)
		}
	}
	faultDuration := time.Since(began)
	heal()
	healedAt := time.Now()
	for _, name := range w.clusters() {
		if duration := w.awaitChanges(name); duration > maxDelayAfterFault {
			w.t.Errorf("pending changes reached %s %s after the fault", name, duration)
		}
	}
	arrived := time.Since(healedAt)
	w.awaitRecovery()
	w.t.Logf("the fault lasted %s; pending changes arrived %s after it, all clusters recovered after %s", faultDuration.Round(time.Millisecond), arrived.Round(time.Millisecond), time.Since(healedAt).Round(time.Millisecond))
	for _, name := range w.clusters() {
		if err := checkEqual("objects in "+name+" before and after", before[name], w.mustGetObjectIDs(name)); err != nil {
			w.t.Error(err)
		}
	}
}
