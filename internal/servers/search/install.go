package search

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// APIServiceName is the name of the APIService with which the API server aggregates this server.
const APIServiceName = "v1alpha1." + searchv1alpha1.GroupName

// ServiceName is the name of the Service of this server in the namespace karmada-system.
const ServiceName = "karmada-search"

// ServingName is the DNS name that the serving certificate must contain. The Karmada API server
// verifies this name for any host of the Service.
const ServingName = ServiceName + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"
