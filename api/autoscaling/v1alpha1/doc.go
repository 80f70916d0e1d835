// Package v1alpha1 holds the autoscaling.karmada.io/v1alpha1 wire types: scaling by metrics of
// all clusters (FederatedHPA) and by schedule (CronFederatedHPA). Both change the template in
// the control plane; the scheduler then divides the new number over the clusters.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.karmada.io
package v1alpha1
