package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// An unreachable member keeps its objects, does not delay others, and gets pending changes when
// it is reachable again.
func TestMemberThatWasUnreachableCatchesUp(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	changing, going := configMap(namespace, "changing"), configMap(namespace, "going")
	env.Create(t, policyFor(t, placementOn(member2, member3), changing, going), changing, going)
	for _, cluster := range []string{member2, member3} {
		awaitInMember(t, env, cluster, changing, exists)
		awaitInMember(t, env, cluster, going, exists)
	}

	stoppedMember := env.Members[member3]
	stoppedMember.Stop()
	testenv.Update(t, env.Karmada, changing, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	deleteObject(t, env.Karmada, going)
	coming := configMap(namespace, "coming")
	policy := policyFor(t, placementOn(member2, member3), coming)
	env.Create(t, policy, coming)
	awaitInMember(t, env, member2, changing, hasColor("green"))
	awaitGone(t, memberClient(env, member2), going)
	awaitInMember(t, env, member2, coming, exists)
	testenv.Holds(t, "the binding and the Work of the unreachable member", quietPeriod, func(ctx context.Context) error {
		rb := bindingOf(t, changing)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(rb), rb); err != nil {
			return err
		}
		// The Work of the deleted template waits for the member.
		return errors.Join(hasClusters(member2, member3)(rb),
			env.Karmada.Get(ctx, client.ObjectKeyFromObject(workOf(t, member3, going)), &workv1alpha1.Work{}))
	})

	// Later tests use the member too.
	if err := stoppedMember.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	awaitInMember(t, env, member3, changing, hasColor("green"))
	awaitInMember(t, env, member3, coming, exists)
	awaitGone(t, memberClient(env, member3), going)
	awaitGone(t, env.Karmada, workOf(t, member3, going))
}

func TestDeletedClusterReleasesItsObjects(t *testing.T) {
	env := alone(t)
	const name = "member4"
	leaving, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leaving.Stop)
	if err := env.Register(t.Context(), name, leaving); err != nil {
		t.Fatal(err)
	}
	template := configMap(env.Namespace(t), "everywhere")
	env.Create(t, policyFor(t, placementOn(), template), template)
	await(t, leaving.Client, template, exists)
	awaitInMember(t, env, member1, template, exists)

	unregisterCluster(t, env, name)
	// The Cluster is deleted last, after the objects that belong to it. The namespace controller
	// needs some seconds to delete the execution namespace.
	if err := checkAbsent(t.Context(), leaving.Client, template); err != nil {
		t.Errorf("the object in the member: %v", err)
	}
	awaitGone(t, env.Karmada, namespaceNamed(work.ExecutionNamespace(name)))
	awaitGone(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}})
	await(t, env.Karmada, bindingOf(t, template), hasClusters(member1, member2, member3))
	awaitInMember(t, env, member1, template, exists)
}

// A member that accepts requests and does not respond occupies only its own workers. It gets
// pending objects as soon as it answers.
func TestHangingMemberDelaysNoOtherMember(t *testing.T) {
	env := joining(t)
	const name, number = "hanging", 20
	hanging, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hanging.Stop)
	proxy := newTCPProxy(t, hanging.Config.Host)
	if err := env.Register(t.Context(), name, hanging); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = proxy.URL() })
	defer unregisterCluster(t, env, name)

	// deliver creates templates for both members and returns how long the healthy member waited
	// for them.
	deliver := func(prefix string) ([]*corev1.ConfigMap, time.Duration) {
		namespace := env.Namespace(t)
		awaitNamespace(t, env, member1, namespace)
		var templates []*corev1.ConfigMap
		var objects []client.Object
		for i := range number {
			template := configMap(namespace, fmt.Sprintf("%s-%02d", prefix, i))
			templates, objects = append(templates, template), append(objects, template)
		}
		began := clock.now()
		env.Create(t, append([]client.Object{policyFor(t, placementOn(member1, name), objects...)}, objects...)...)
		for _, template := range templates {
			awaitInMember(t, env, member1, template, exists)
		}
		return templates, clock.since(began)
	}
	awaitInHanging := func(templates []*corev1.ConfigMap) {
		for _, template := range templates {
			await(t, hanging.Client, template, exists)
		}
	}
	var baseline, whilePaused, catchUp []time.Duration
	for range 3 {
		templates, duration := deliver("open")
		baseline = append(baseline, duration)
		awaitInHanging(templates)

		proxy.setPaused(true)
		templates, duration = deliver("closed")
		whilePaused = append(whilePaused, duration)
		for _, template := range templates {
			if err := checkAbsent(t.Context(), hanging.Client, template); err != nil {
				t.Errorf("%s passed a paused proxy: %v", template.Name, err)
			}
		}
		proxy.setPaused(false)
		opened := clock.now()
		awaitInHanging(templates)
		catchUp = append(catchUp, clock.since(opened))
	}
	// A worker that waits for the hanging member waits for 30 seconds. Shorter delays come from
	// the load of the machine. The benchmark measures the delay of the healthy member.
	if slices.Min(whilePaused) > slices.Min(baseline)+15*time.Second {
		t.Errorf("the healthy member waited %v instead of %v", whilePaused, baseline)
	}
	t.Logf("the healthy member waited %v, usually %v; the hanging member got pending objects after %v", whilePaused, baseline, catchUp)
}
