package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// The bindings are stored as v1alpha2. v1alpha2 has all fields of v1alpha1. Fields that
// only v1alpha2 has are lost in the conversion to v1alpha1.
//
// The results of all conversions share no memory with their input.

// ToV1alpha2 converts the binding to the storage version.
func (b *ResourceBinding) ToV1alpha2() *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		TypeMeta:   typeMeta(workv1alpha2.GroupVersion.String(), workv1alpha2.ResourceKindResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specToV1alpha2(b.Spec.DeepCopy()),
		Status:     statusToV1alpha2(b.Status.DeepCopy()),
	}
}

// ToV1alpha2 converts the binding to the storage version.
func (b *ClusterResourceBinding) ToV1alpha2() *workv1alpha2.ClusterResourceBinding {
	return &workv1alpha2.ClusterResourceBinding{
		TypeMeta:   typeMeta(workv1alpha2.GroupVersion.String(), workv1alpha2.ResourceKindClusterResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specToV1alpha2(b.Spec.DeepCopy()),
		Status:     statusToV1alpha2(b.Status.DeepCopy()),
	}
}

// ResourceBindingFromV1alpha2 converts a stored binding to v1alpha1.
func ResourceBindingFromV1alpha2(b *workv1alpha2.ResourceBinding) *ResourceBinding {
	return &ResourceBinding{
		TypeMeta:   typeMeta(GroupVersion.String(), workv1alpha2.ResourceKindResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specFromV1alpha2(b.Spec.DeepCopy()),
		Status:     statusFromV1alpha2(b.Status.DeepCopy()),
	}
}

// ClusterResourceBindingFromV1alpha2 converts a stored binding to v1alpha1.
func ClusterResourceBindingFromV1alpha2(b *workv1alpha2.ClusterResourceBinding) *ClusterResourceBinding {
	return &ClusterResourceBinding{
		TypeMeta:   typeMeta(GroupVersion.String(), workv1alpha2.ResourceKindClusterResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specFromV1alpha2(b.Spec.DeepCopy()),
		Status:     statusFromV1alpha2(b.Status.DeepCopy()),
	}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func specToV1alpha2(spec *ResourceBindingSpec) workv1alpha2.ResourceBindingSpec {
	out := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion:      spec.Resource.APIVersion,
			Kind:            spec.Resource.Kind,
			Namespace:       spec.Resource.Namespace,
			Name:            spec.Resource.Name,
			ResourceVersion: spec.Resource.ResourceVersion,
		},
		Replicas: spec.Resource.Replicas,
		Clusters: convertList(spec.Clusters, func(c TargetCluster) workv1alpha2.TargetCluster {
			return workv1alpha2.TargetCluster{Name: c.Name, Replicas: c.Replicas}
		}),
	}
	if requests := spec.Resource.ReplicaResourceRequirements; requests != nil {
		out.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: requests}
	}
	return out
}

func specFromV1alpha2(spec *workv1alpha2.ResourceBindingSpec) ResourceBindingSpec {
	out := ResourceBindingSpec{
		Resource: ObjectReference{
			APIVersion:      spec.Resource.APIVersion,
			Kind:            spec.Resource.Kind,
			Namespace:       spec.Resource.Namespace,
			Name:            spec.Resource.Name,
			ResourceVersion: spec.Resource.ResourceVersion,
			Replicas:        spec.Replicas,
		},
		Clusters: convertList(spec.Clusters, func(c workv1alpha2.TargetCluster) TargetCluster {
			return TargetCluster{Name: c.Name, Replicas: c.Replicas}
		}),
	}
	if spec.ReplicaRequirements != nil {
		out.Resource.ReplicaResourceRequirements = spec.ReplicaRequirements.ResourceRequest
	}
	return out
}

func statusToV1alpha2(status *ResourceBindingStatus) workv1alpha2.ResourceBindingStatus {
	return workv1alpha2.ResourceBindingStatus{
		Conditions: status.Conditions,
		AggregatedStatus: convertList(status.AggregatedStatus,
			func(item AggregatedStatusItem) workv1alpha2.AggregatedStatusItem {
				return workv1alpha2.AggregatedStatusItem{
					ClusterName:    item.ClusterName,
					Status:         item.Status,
					Applied:        item.Applied,
					AppliedMessage: item.AppliedMessage,
				}
			}),
	}
}

func statusFromV1alpha2(status *workv1alpha2.ResourceBindingStatus) ResourceBindingStatus {
	return ResourceBindingStatus{
		Conditions: status.Conditions,
		AggregatedStatus: convertList(status.AggregatedStatus,
			func(item workv1alpha2.AggregatedStatusItem) AggregatedStatusItem {
				return AggregatedStatusItem{
					ClusterName:    item.ClusterName,
					Status:         item.Status,
					Applied:        item.Applied,
					AppliedMessage: item.AppliedMessage,
				}
			}),
	}
}

// convertList converts the items of a list. A nil list stays nil.
func convertList[From, To any](list []From, convert func(From) To) []To {
	if list == nil {
		return nil
	}
	out := make([]To, len(list))
	for i := range list {
		out[i] = convert(list[i])
	}
	return out
}
