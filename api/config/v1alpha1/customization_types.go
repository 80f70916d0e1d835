package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterCustomization defines how the control plane interprets one
// kind, with Lua scripts.
//
// A script runs under Lua 5.1 without access to files, network or environment,
// and with a timeout of 1 second. It can use the string, table and math
// libraries, os.time, os.date, and the library that require("kube") returns.
// The script must define the global function of its rule. It replaces webhooks
// and the built-in interpreter for this operation.
//
// Several objects may customize the same kind when their rules are different.
// Only dependencyInterpretation may be defined by several objects: their
// results are merged.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=".spec.target.apiVersion",name="TARGET-API-VERSION",type=string
// +kubebuilder:printcolumn:JSONPath=".spec.target.kind",name="TARGET-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=".metadata.creationTimestamp",name="AGE",type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the kind and the scripts that interpret it.
	// +required
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationSpec defines a kind and the scripts that
// interpret it.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind that the scripts interpret.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations holds the scripts, at most one for each operation.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget is one kind in one version.
type CustomizationTarget struct {
	// APIVersion is the group and version of the kind, such as
	// "apps.example.io/v1". Other versions of the kind are not covered.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind in the singular, such as "Workload".
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules holds one optional script for each operation. An operation
// without a script is performed by a webhook, or else by the built-in
// interpreter.
type CustomizationRules struct {
	// Retention keeps values that belong to the member cluster, such as a field
	// that a controller there fills in, when the manifest is applied.
	// +optional
	Retention *LocalValueRetention `json:"retention,omitempty"`

	// ReplicaResource returns the number of replicas of an object and the
	// requirements of one replica. The scheduler uses them to choose clusters
	// and to divide replicas.
	// +optional
	ReplicaResource *ReplicaResourceRequirement `json:"replicaResource,omitempty"`

	// ComponentResource returns the components of an object with several pod
	// templates. Each component has its own replicas and requirements.
	// +optional
	ComponentResource *ComponentResourceRequirement `json:"componentResource,omitempty"`

	// ReplicaRevision sets the number of replicas in the object for one
	// cluster.
	// +optional
	ReplicaRevision *ReplicaRevision `json:"replicaRevision,omitempty"`

	// StatusReflection selects the status to collect from the object in a
	// member cluster. Without any rule for the kind, the whole status is
	// collected.
	// +optional
	StatusReflection *StatusReflection `json:"statusReflection,omitempty"`

	// StatusAggregation combines the collected statuses of all clusters into
	// the status of the template.
	// +optional
	StatusAggregation *StatusAggregation `json:"statusAggregation,omitempty"`

	// HealthInterpretation decides whether the object in a member cluster is
	// healthy.
	// +optional
	HealthInterpretation *HealthInterpretation `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation returns the objects that must be propagated with
	// the object to the same clusters.
	// +optional
	DependencyInterpretation *DependencyInterpretation `json:"dependencyInterpretation,omitempty"`
}

// LocalValueRetention holds the script that retains values of the member
// cluster.
type LocalValueRetention struct {
	// LuaScript defines the function
	//
	//	function Retain(desiredObj, observedObj)
	//
	// where desiredObj is the object to apply and observedObj is the current
	// object in the member cluster. It returns desiredObj with the values to
	// retain:
	//
	//	function Retain(desiredObj, observedObj)
	//	  desiredObj.spec.paused = observedObj.spec.paused
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaResourceRequirement holds the script that returns the replicas and
// their requirements.
type ReplicaResourceRequirement struct {
	// LuaScript defines the function
	//
	//	function GetReplicas(desiredObj)
	//
	// where desiredObj is the template. It returns two values: the number of
	// replicas, and a table with the requirements of one replica, or nil when
	// they are unknown:
	//
	//	function GetReplicas(desiredObj)
	//	  local kube = require("kube")
	//	  return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
	//	end
	//
	// The table may have the fields nodeClaim (nodeSelector, tolerations,
	// hardNodeAffinity), resourceRequest, namespace and priorityClassName.
	// +required
	LuaScript string `json:"luaScript"`
}

// ComponentResourceRequirement holds the script that returns the components of
// an object.
type ComponentResourceRequirement struct {
	// LuaScript defines the function
	//
	//	function GetComponents(desiredObj)
	//
	// where desiredObj is the template. It returns a list with one table for
	// each component, or nil. A table has the fields name, replicas, and
	// optionally replicaRequirements:
	//
	//	function GetComponents(desiredObj)
	//	  local kube = require("kube")
	//	  return {
	//	    {name = "master", replicas = 1,
	//	     replicaRequirements = kube.accuratePodRequirements(desiredObj.spec.master.template)},
	//	    {name = "worker", replicas = desiredObj.spec.worker.replicas,
	//	     replicaRequirements = kube.accuratePodRequirements(desiredObj.spec.worker.template)},
	//	  }
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaRevision holds the script that sets the replicas of an object.
type ReplicaRevision struct {
	// LuaScript defines the function
	//
	//	function ReviseReplica(desiredObj, desiredReplica)
	//
	// where desiredObj is the template and desiredReplica the number of
	// replicas assigned to one cluster. It returns the changed object:
	//
	//	function ReviseReplica(desiredObj, desiredReplica)
	//	  desiredObj.spec.replicas = desiredReplica
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusReflection holds the script that selects the status to collect.
type StatusReflection struct {
	// LuaScript defines the function
	//
	//	function ReflectStatus(observedObj)
	//
	// where observedObj is the object in the member cluster. It returns a table
	// with the status to collect:
	//
	//	function ReflectStatus(observedObj)
	//	  return {readyReplicas = observedObj.status.readyReplicas}
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusAggregation holds the script that combines collected statuses.
type StatusAggregation struct {
	// LuaScript defines the function
	//
	//	function AggregateStatus(desiredObj, items)
	//
	// where desiredObj is the template and items a list with one table for
	// each cluster, or nil when there is none. A table has the fields
	// clusterName, status, applied, appliedMessage and health. It returns the
	// template with its new status:
	//
	//	function AggregateStatus(desiredObj, items)
	//	  if items == nil then
	//	    return desiredObj
	//	  end
	//	  local ready = 0
	//	  for _, item in ipairs(items) do
	//	    if item.status ~= nil then
	//	      ready = ready + (item.status.readyReplicas or 0)
	//	    end
	//	  end
	//	  desiredObj.status = {readyReplicas = ready}
	//	  return desiredObj
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// HealthInterpretation holds the script that decides whether an object is
// healthy.
type HealthInterpretation struct {
	// LuaScript defines the function
	//
	//	function InterpretHealth(observedObj)
	//
	// where observedObj is the object in the member cluster. It returns true
	// when the object is healthy, otherwise false:
	//
	//	function InterpretHealth(observedObj)
	//	  return observedObj.status.readyReplicas == observedObj.spec.replicas
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// DependencyInterpretation holds the script that returns the dependencies.
type DependencyInterpretation struct {
	// LuaScript defines the function
	//
	//	function GetDependencies(desiredObj)
	//
	// where desiredObj is the template. It returns a list with one table for
	// each dependency. A table has apiVersion, kind, optionally namespace, and
	// name or labelSelector:
	//
	//	function GetDependencies(desiredObj)
	//	  return {
	//	    {apiVersion = "v1", kind = "ConfigMap",
	//	     namespace = desiredObj.metadata.namespace, name = desiredObj.spec.config},
	//	  }
	//	end
	//
	// +required
	LuaScript string `json:"luaScript"`
}

// ResourceInterpreterCustomizationList is a list of customizations.
//
// +kubebuilder:object:root=true
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items holds the customizations.
	Items []ResourceInterpreterCustomization `json:"items"`
}
