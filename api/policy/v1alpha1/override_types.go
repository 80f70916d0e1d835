package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds and resource names of the override policies.
const (
	ResourceKindOverridePolicy          = "OverridePolicy"
	ResourcePluralOverridePolicy        = "overridepolicies"
	ResourceKindClusterOverridePolicy   = "ClusterOverridePolicy"
	ResourcePluralClusterOverridePolicy = "clusteroverridepolicies"
)

// OverridePolicy changes objects of its own namespace before they are delivered
// to the selected clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={karmada-io},shortName=op
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the set of changes.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverrideSpec returns the spec. OverridePolicy and ClusterOverridePolicy both
// have this method.
func (p *OverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

// OverridePolicyList is a list of OverridePolicy.
//
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes objects of any namespace, and cluster-scoped
// ones, before they are delivered to the selected clusters. It is applied
// before the OverridePolicies, so that their changes take precedence.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope="Cluster",categories={karmada-io},shortName=cop
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the set of changes.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverrideSpec returns the spec. OverridePolicy and ClusterOverridePolicy both
// have this method.
func (p *ClusterOverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

// ClusterOverridePolicyList is a list of ClusterOverridePolicy.
//
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec defines the objects to change, the clusters, and the changes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetCluster) || !has(self.overrideRules) || size(self.overrideRules) == 0",message="targetCluster excludes overrideRules; move it there",reason=FieldValueForbidden,fieldPath=".targetCluster"
// +kubebuilder:validation:XValidation:rule="!has(self.overriders) || !has(self.overrideRules) || size(self.overrideRules) == 0 || ((!has(self.overriders.plaintext) || size(self.overriders.plaintext) == 0) && (!has(self.overriders.imageOverrider) || size(self.overriders.imageOverrider) == 0) && (!has(self.overriders.commandOverrider) || size(self.overriders.commandOverrider) == 0) && (!has(self.overriders.argsOverrider) || size(self.overriders.argsOverrider) == 0) && (!has(self.overriders.labelsOverrider) || size(self.overriders.labelsOverrider) == 0) && (!has(self.overriders.annotationsOverrider) || size(self.overriders.annotationsOverrider) == 0))",message="overriders excludes overrideRules; move it there",reason=FieldValueForbidden,fieldPath=".overriders"
// +kubebuilder:validation:XValidation:rule="!has(self.targetCluster) || !has(self.targetCluster.fieldSelector) || !has(self.targetCluster.fieldSelector.matchExpressions) || self.targetCluster.fieldSelector.matchExpressions.all(e, e.key in ['provider','region','zone'] && e.operator in ['In','NotIn'])",message="clusters are selected by the fields provider, region and zone, with the operators In and NotIn",fieldPath=".targetCluster"
type OverrideSpec struct {
	// ResourceSelectors select the objects to change. An object is selected
	// when any of them matches. Unset means all objects that the scope of the
	// policy covers.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules are changes for groups of clusters, applied in this order.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster selects the clusters for overriders. Deprecated: use
	// overrideRules, with which it cannot be combined.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders are the changes for targetCluster. Deprecated: use
	// overrideRules, with which it cannot be combined.
	// +optional
	Overriders Overriders `json:"overriders,omitempty"`
}

// RuleWithCluster is a set of changes for a group of clusters.
type RuleWithCluster struct {
	// TargetCluster selects the clusters. Unset means all of them.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders are the changes.
	// +required
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes to an object. They are applied in this order: image,
// command, args, labels, annotations, field, plaintext. Each change is applied
// to the result of the previous one.
type Overriders struct {
	// Plaintext changes any field by its path.
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`

	// ImageOverrider changes container images.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the commands of containers.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the arguments of containers.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// LabelsOverrider changes the labels of the object.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes the annotations of the object.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes a JSON or YAML document that is stored in a field
	// as text.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`
}
