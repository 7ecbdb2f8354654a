// A forecast without Python: forecast PACKAGE LIBRARY < prices
// A line of input is a day (days since 1970-01-01) and the price of each symbol; nan = missing.
// A line of output is a horizon and a symbol, as numbers from 0, and the quantiles of the log-return.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>
#include <iostream>
#include <sstream>

int main(int count, char** arguments) {
  if (count != 3 || !dlopen(arguments[2], RTLD_NOW)) {  // the library registers the operators
    std::fprintf(stderr, "%s\n", count != 3 ? "usage: forecast PACKAGE LIBRARY < prices" : dlerror());
    return 2;
  }
  std::vector<double> prices;
  std::vector<int64_t> days;
  for (std::string line, price; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    for (fields >> days.emplace_back(); fields >> price;) prices.push_back(std::stod(price));
  }
  const int64_t T = days.size(), N = T ? prices.size() / T : 0;
  torch::inductor::AOTIModelPackageLoader model(arguments[1]);
  const auto quantiles = model.run({at::tensor(prices).view({1, T, N}), at::tensor(days).view({1, T})})[0][0];
  for (int64_t h = 0; h < quantiles.size(0); ++h)
    for (int64_t n = 0; n < N; ++n) {
      std::printf("%ld %ld", h, n);
      for (int64_t q = 0; q < quantiles.size(2); ++q) std::printf(" %.17g", quantiles[h][n][q].item<double>());
      std::printf("\n");
    }
}
