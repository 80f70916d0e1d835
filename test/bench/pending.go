package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var bindingResource = schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "resourcebindings"}

// clusterObject returns a Cluster that looks like a real one: Ready, with 50 API groups and the
// resources of 20 to 69 nodes.
func clusterObject(i int) *unstructured.Unstructured {
	nodes := int64(20 + i%50)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterResource.GroupVersion().String(), "kind": "Cluster",
		"metadata": map[string]any{
			"name":   fmt.Sprintf("object-%03d", i),
			"labels": map[string]any{"tier": "gold", "environment": fmt.Sprintf("env-%d", i%3)},
		},
		"spec": map[string]any{
			"syncMode": "Pull", "id": fmt.Sprintf("object-%03d", i),
			"provider": "example", "region": fmt.Sprintf("region-%d", i%5), "zones": []any{fmt.Sprintf("zone-%d", i%15)},
		},
		"status": map[string]any{
			"kubernetesVersion": "v1.36.3",
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "cluster is healthy and ready to accept workloads",
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
			"apiEnablements": apiEnablements(),
			"nodeSummary":    map[string]any{"totalNum": nodes, "readyNum": nodes},
			"resourceSummary": map[string]any{
				"allocatable": resourceAmounts(nodes*64, nodes*256, nodes*110),
				"allocated":   resourceAmounts(nodes*8, nodes*32, nodes*20),
			},
		},
	}}
}

func resourceAmounts(cores, gibibytes, pods int64) map[string]any {
	return map[string]any{"cpu": fmt.Sprint(cores), "memory": fmt.Sprintf("%dGi", gibibytes), "pods": fmt.Sprint(pods)}
}

func apiEnablements() []any {
	apps := []any{}
	for _, kind := range []string{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
		apps = append(apps, map[string]any{"name": kind, "kind": kind})
	}
	enablements := []any{map[string]any{"groupVersion": "apps/v1", "resources": apps}}
	for group := range 49 {
		enablements = append(enablements, map[string]any{
			"groupVersion": fmt.Sprintf("group-%02d.example.io/v1", group),
			"resources":    []any{map[string]any{"name": "things", "kind": "Thing"}, map[string]any{"name": "others", "kind": "Other"}},
		})
	}
	return enablements
}

// pendingBinding returns the binding of a Deployment with the given name as the detector creates it. The strategies
// alternate.
func pendingBinding(namespace, name string, i int) *unstructured.Unstructured {
	replicas := int64(2 + i%20)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bindingResource.GroupVersion().String(), "kind": "ResourceBinding",
		"metadata": map[string]any{
			"name": name + "-deployment", "namespace": namespace,
			"labels": map[string]any{
				"propagationpolicy.karmada.io/permanent-id": "5f0c1f3e-7d0a-4c39-9f0e-6b1a4a2f9d11",
				"resourcebinding.karmada.io/permanent-id":   fmt.Sprintf("9b1f6c1e-0000-4000-8000-%012d", i),
			},
			"annotations": map[string]any{
				"propagationpolicy.karmada.io/name": "everywhere", "propagationpolicy.karmada.io/namespace": namespace,
			},
		},
		"spec": map[string]any{
			"resource": map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name,
				"uid": fmt.Sprintf("7d4c2b1a-0000-4000-8000-%012d", i), "resourceVersion": "1",
			},
			"replicas": replicas,
			"replicaRequirements": map[string]any{
				"resourceRequest": map[string]any{"cpu": "250m", "memory": "512Mi"}, "namespace": namespace,
			},
			"schedulerName": "default-scheduler", "conflictResolution": "Abort",
			"placement": pendingPlacement(i),
		},
	}}
}

// pendingPlacement returns in turn a division by dynamic weight, an aggregated division, and a
// duplication to three clusters.
func pendingPlacement(i int) map[string]any {
	gold := map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"tier": "gold"}}}
	switch i % 3 {
	case 0:
		return map[string]any{"clusterAffinity": gold, "replicaScheduling": map[string]any{
			"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
			"weightPreference": map[string]any{"dynamicWeight": "AvailableReplicas"},
		}}
	case 1:
		return map[string]any{"clusterAffinity": gold, "replicaScheduling": map[string]any{
			"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated",
		}}
	default:
		names := []any{}
		for j := range 3 {
			names = append(names, fmt.Sprintf("object-%03d", (i+j)%20))
		}
		return map[string]any{
			"clusterAffinity":   map[string]any{"clusterNames": names},
			"replicaScheduling": map[string]any{"replicaSchedulingType": "Duplicated"},
		}
	}
}
