// Serves a SavedModel of a JAX function from C, without Python: the library of the TensorFlow wheel is all there is.
//
//   cc serve.c -I$TF/include -L$TF -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,-rpath,$TF -o serve
//   ./serve FOLDER INPUT_OP OUTPUT_OP BATCH FEATURES
//
// Feeds float32[BATCH, FEATURES] with 0, 1, 2, ... divided by their number, and prints the results, one row a line.

#include <stdio.h>
#include <stdlib.h>
#include <tensorflow/c/c_api.h>

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

static TF_Output output_of(TF_Graph* graph, const char* name, int index) {
  TF_Output output = {TF_GraphOperationByName(graph, name), index};
  if (output.oper == NULL) {
    fprintf(stderr, "the graph has no operation %s\n", name);
    exit(1);
  }
  return output;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s FOLDER INPUT_OP OUTPUT_OP BATCH FEATURES\n", argv[0]);
    return 2;
  }
  const int64_t shape[2] = {atoll(argv[4]), atoll(argv[5])};
  const size_t count = (size_t)(shape[0] * shape[1]);

  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "load");

  TF_Tensor* input = TF_AllocateTensor(TF_FLOAT, shape, 2, count * sizeof(float));
  float* values = TF_TensorData(input);
  for (size_t i = 0; i < count; ++i) values[i] = (float)i / (float)count;

  TF_Output feed = output_of(graph, argv[2], 0), fetch = output_of(graph, argv[3], 0);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &feed, &input, 1, &fetch, &result, 1, NULL, 0, NULL, status);
  check(status, "run");

  const float* scores = TF_TensorData(result);
  const int64_t rows = TF_Dim(result, 0), columns = TF_TensorElementCount(result) / rows;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) printf("%.9g ", scores[i * columns + j]);
    printf("\n");
  }

  TF_DeleteTensor(input);
  TF_DeleteTensor(result);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
