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

// The tests of this file stop API servers. From then on metrics take long to
// read: the collectors of a stopped server wait for its storage in vain. So they
// are in a file that comes behind those that read metrics.

// A member that is out of reach loses nothing, holds up nobody, and catches up
// when it is back.
func TestMemberThatReturnsCatchesUp(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	changing, going := configMap(namespace, "changing"), configMap(namespace, "going")
	env.Create(t, policyFor(t, on(member2, member3), changing, going), changing, going)
	for _, cluster := range []string{member2, member3} {
		inMember(t, env, cluster, changing, exists)
		inMember(t, env, cluster, going, exists)
	}

	lost := env.Members[member3]
	lost.Stop()
	testenv.Update(t, env.Karmada, changing, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	deleteObject(t, env.Karmada, going)
	coming := configMap(namespace, "coming")
	policy := policyFor(t, on(member2, member3), coming)
	env.Create(t, policy, coming)
	inMember(t, env, member2, changing, hasColor("green"))
	awaitGone(t, member(env, member2), going)
	inMember(t, env, member2, coming, exists)
	testenv.Holds(t, "what the lost member has to hold", quiet, func(ctx context.Context) error {
		bound := bindingOf(t, changing)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return err
		}
		// The Work of the deleted template waits for the member.
		return errors.Join(names(member2, member3)(bound),
			env.Karmada.Get(ctx, client.ObjectKeyFromObject(workOf(t, member3, going)), &workv1alpha1.Work{}))
	})

	// The member lives on after the test.
	if err := lost.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	inMember(t, env, member3, changing, hasColor("green"))
	inMember(t, env, member3, coming, exists)
	awaitGone(t, member(env, member3), going)
	awaitGone(t, env.Karmada, workOf(t, member3, going))
}

func TestClusterThatLeavesGivesEverythingBack(t *testing.T) {
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
	env.Create(t, policyFor(t, on(), template), template)
	await(t, leaving.Client, template, exists)
	inMember(t, env, member1, template, exists)

	leave(t, env, name)
	// The Cluster goes last, so what belonged to it is gone when it is. Its namespace
	// takes some seconds to find out that it is empty.
	if err := absent(t.Context(), leaving.Client, template); err != nil {
		t.Errorf("the object in the member: %v", err)
	}
	awaitGone(t, env.Karmada, namespaceNamed(work.ExecutionNamespace(name)))
	awaitGone(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}})
	await(t, env.Karmada, bindingOf(t, template), names(member1, member2, member3))
	inMember(t, env, member1, template, exists)
}

// A member that accepts every request and answers none costs its own workers only,
// and gets what has waited for it as soon as it answers.
func TestMemberThatHangsDelaysNobodyElse(t *testing.T) {
	env := alone(t)
	const name, number = "hanging", 20
	hanging, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hanging.Stop)
	between := newGate(t, hanging.Config.Host)
	if err := env.Register(t.Context(), name, hanging); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = between.URL() })
	defer leave(t, env, name)

	// deliver sends a number of templates to both members and tells how long the
	// healthy one waited for them.
	deliver := func(prefix string) ([]*corev1.ConfigMap, time.Duration) {
		namespace := env.Namespace(t)
		namespaceIn(t, env, member1, namespace)
		var templates []*corev1.ConfigMap
		var objects []client.Object
		for i := range number {
			template := configMap(namespace, fmt.Sprintf("%s-%02d", prefix, i))
			templates, objects = append(templates, template), append(objects, template)
		}
		began := clock.now()
		env.Create(t, append([]client.Object{policyFor(t, on(member1, name), objects...)}, objects...)...)
		for _, template := range templates {
			inMember(t, env, member1, template, exists)
		}
		return templates, clock.since(began)
	}
	arrive := func(templates []*corev1.ConfigMap) {
		for _, template := range templates {
			await(t, hanging.Client, template, exists)
		}
	}
	var usual, hampered, released []time.Duration
	for range 3 {
		templates, took := deliver("open")
		usual = append(usual, took)
		arrive(templates)

		between.set(true)
		templates, took = deliver("closed")
		hampered = append(hampered, took)
		for _, template := range templates {
			if err := absent(t.Context(), hanging.Client, template); err != nil {
				t.Errorf("%s came through a closed gate: %v", template.Name, err)
			}
		}
		between.set(false)
		opened := clock.now()
		arrive(templates)
		released = append(released, clock.since(opened))
	}
	// A worker that waited for the hanging member would wait for half a minute. What
	// is less is what else this machine has to do; how much the healthy member waits
	// is measured by the benchmark.
	if slices.Min(hampered) > slices.Min(usual)+15*time.Second {
		t.Errorf("the healthy member waited %v instead of %v", hampered, usual)
	}
	t.Logf("the healthy member waited %v, usually %v; the hanging one caught up in %v", hampered, usual, released)
}
